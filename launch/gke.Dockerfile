# The image of gke_jobset.yaml, which says how to build it.
FROM python:3.11-slim
WORKDIR /nsode_jax
COPY . .
RUN pip install --no-cache-dir -e '.[tpu,train]'
