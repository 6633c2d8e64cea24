"""The TFDS builder of the test sets: one split each, `-` in its name becoming `_`.

    from nsode_jax.data_builders.nsode_testsets.nsode_testsets_dataset_builder import Builder

    Builder(data_dir="datasets").download_and_prepare()

writes them as ArrayRecord, and `tfds.data_source("nsode_testsets", split="textbook",
data_dir="datasets")` reads them, both without TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from nsode_jax.data.records import features, float64
from nsode_jax.evaluation.testsets import TEST_SETS, Problem
from nsode_jax.system.extras import extra

with extra("train", "building a data set"):
    import tensorflow_datasets as tfds
from etils import epath


class Builder(tfds.core.GeneratorBasedBuilder):
    """Scalar ODEs of known law, each with one initial value and its clean solution."""

    # Of the package's name TFDS makes a folder below nsode_jax, where it need not be.
    pkg_dir_path = tfds.core.Path(__file__).parent
    VERSION = tfds.core.Version("0.1.0")
    # TFDS would look for it below the top package, where it is in a wheel only.
    pkg_dir_path = epath.Path(__file__).parent

    def __init__(self, *, test_sets: Iterable[str] | None = None, **kwargs):
        """
        Args:
          test_sets: which of `TEST_SETS`; all of them by default.
          **kwargs: of `tfds.core.GeneratorBasedBuilder`.

        Raises:
          ValueError: if there is no such test set.
        """
        kwargs.setdefault("file_format", "array_record")
        self.test_sets = tuple(TEST_SETS if test_sets is None else test_sets)
        for name in self.test_sets:
            if name not in TEST_SETS:
                raise ValueError(f"no test set {name}; there are {', '.join(TEST_SETS)}")
        super().__init__(**kwargs)

    def _info(self) -> tfds.core.DatasetInfo:
        return self.dataset_info_from_configs(
            description="Trajectories of ODEs dy/dt = f(y) whose law is known, to test NSODE.",
            features=tfds.features.FeaturesDict(
                {
                    "name": tfds.features.Text(),
                    "law": tfds.features.Text(),
                    "y0": float64(()),
                    **features(),  # Of the training data.
                }
            ),
            disable_shuffling=True,  # Row i is problem i of the set.
        )

    def _split_generators(self, dl_manager: tfds.download.DownloadManager):
        return {split_of(name): self._generate_examples(name) for name in self.test_sets}

    def _generate_examples(self, test_set: str) -> Iterator[tuple[int, dict[str, Any]]]:
        for i, problem in enumerate(TEST_SETS[test_set]()):
            yield i, problem_to_features(problem)


def split_of(test_set: str) -> str:
    """The name of a test set as TFDS accepts it."""
    return test_set.replace("-", "_")


def problem_to_features(problem: Problem) -> dict[str, Any]:
    """The fields of one problem.

    `skeleton` is empty, and so are `constants`, where our operators cannot express
    the law; `law` is then its formula as published.
    """
    expression = problem.expression
    return {
        "name": problem.name,
        "law": problem.law.infix,
        "skeleton": expression.skeleton.key if expression else "",
        "constants": np.asarray(expression.constants if expression else (), np.float64),
        "y0": np.float64(problem.y0),
        "max_time": np.float64(problem.duration),
        "y": problem.solve(),
    }
