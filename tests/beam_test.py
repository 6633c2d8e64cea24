"""The builder `nsode` on Apache Beam makes what it makes without."""

import numpy as np
import pytest
import tensorflow_datasets as tfds
from nsode_jax.data_builders.nsode.nsode_dataset_builder import Builder

from nsode_jax.data.records import open_split
from nsode_jax.discovery import discover_each

pytest.importorskip("apache_beam", reason="Beam is the extra `beam`")

from apache_beam.options.pipeline_options import PipelineOptions  # noqa: E402

SPLITS = ("train", "validation")


def build(folder, flags=None):
    """Examples of the data set smoke by split, each as a tuple of bytes."""
    beam = tfds.download.DownloadConfig(beam_options=PipelineOptions(flags)) if flags else None
    builder = Builder(config="smoke", data_dir=str(folder), processes=0)
    builder.download_and_prepare(download_config=beam)
    examples = {}
    for split in SPLITS:
        source = open_split("nsode/smoke", split, str(folder))
        examples[split] = [
            tuple(np.asarray(example[name]).tobytes() for name in sorted(example))
            for example in source
        ]
        assert len(examples[split]) == builder.info.splits[split].num_examples
    return examples


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return build(tmp_path_factory.mktemp("plain"))


# Not multi_threading: in 4 of 15 runs it lost records without a word.
@pytest.mark.parametrize(
    "flags",
    [
        ["--direct_running_mode=in_memory"],
        ["--direct_running_mode=multi_processing", "--direct_num_workers=2"],
    ],
    ids=["in_memory", "multi_processing"],
)
def test_beam_makes_the_same_examples(plain, flags, tmp_path):
    examples = build(tmp_path, ["--runner=DirectRunner", *flags])
    for split in SPLITS:
        assert len(examples[split]) == len(plain[split]) > 0
        assert len(set(plain[split])) == len(plain[split])
        assert set(examples[split]) == set(plain[split])


def test_many_series_on_beam(tmp_path):
    """What is found is found by workers of Beam, and what goes wrong comes back."""
    t = np.linspace(0.0, 4.0, 20)
    series = {"slow": (t, 3 * np.exp(-0.4 * t)), "short": (t[:4], t[:4])}
    table = discover_each(
        series,
        tmp_path,
        beam_options=["--runner=DirectRunner"],
        effort="fast",
        sources=("named laws",),
    )
    assert table.loc["slow", "r2"] > 0.9999
    assert "at least 8" in table.loc["short", "error"]
    assert not list(tmp_path.glob("*.error"))
