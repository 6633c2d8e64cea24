# The image of a Beam worker: this package, with the Beam of the machine that starts the job.
# Its context is a folder that holds the package's wheel; see generation_on_beam.md.
ARG PYTHON=3.11
ARG BEAM
FROM apache/beam_python${PYTHON}_sdk:${BEAM}
ARG BEAM
# Dataflow writes TFRecord, for which TFDS needs tensorflow and mlcroissant.
ARG MORE=
COPY *.whl /tmp/
RUN pip install "$(echo /tmp/*.whl)[train]" apache-beam==${BEAM} ${MORE}
