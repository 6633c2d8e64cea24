"""Generates a data set on Apache Beam; see generation_on_beam.md beside this file.

python launch/generate_on_beam.py --config smoke --data_dir DATA --runner=DirectRunner
"""

import argparse

import tensorflow_datasets as tfds
from absl import flags
from apache_beam.options.pipeline_options import PipelineOptions
from nsode_jax.data_builders.nsode.nsode_dataset_builder import CONFIG_NAMES, Builder


def main() -> None:
    """Hands to Beam all options but its own."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0], allow_abbrev=False
    )
    parser.add_argument("--config", required=True, choices=CONFIG_NAMES)
    parser.add_argument("--data_dir", required=True, help="a folder that all workers see")
    arguments, beam_flags = parser.parse_known_args()
    flags.FLAGS.mark_as_parsed()  # TFDS reads absl flags, of which there are none.

    builder = Builder(config=arguments.config, data_dir=arguments.data_dir)
    options = PipelineOptions(beam_flags or ["--runner=DirectRunner"])
    builder.download_and_prepare(download_config=tfds.download.DownloadConfig(beam_options=options))
    for split in builder.info.splits.values():
        print(f"{split.name}: {split.num_examples:,} examples")


if __name__ == "__main__":
    main()
