"""The preview for systems, `configs/systems.py`: it trains, and decodes whole systems."""

import dataclasses

import numpy as np
import pytest
from nsode_jax.configs import systems
from workdirs import losses

from nsode_jax.config import from_config_dict
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.decoding.propose import Proposer
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.modeling.pretrained import WeightsError, load_pretrained
from nsode_jax.training.loop import train
from nsode_jax.training.run_config import ModelChanged, pretrained_params

CONFIG = from_config_dict(systems.get_config())
T = np.linspace(0.0, 4.0, 40)
PREY, PREDATOR = 1.0 + 0.5 * np.sin(2.0 * T), 1.0 + 0.3 * np.cos(2.0 * T)


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("systems")
    training = dataclasses.replace(CONFIG.training, log_every=1)
    train(dataclasses.replace(CONFIG, training=training), folder)
    return folder


@pytest.fixture(scope="module")
def proposer(workdir):
    return Proposer.from_pretrained(workdir / "weights")


def test_the_loss_falls(workdir):
    found = list(losses(workdir).values())
    assert len(found) == CONFIG.training.steps
    assert np.mean(found[-5:]) < 0.75 * np.mean(found[:5])


def test_the_weights_know_what_the_equations_are_about(workdir):
    model, _, vocabulary, _ = load_pretrained(workdir / "weights")
    assert vocabulary == Vocabulary.of(CONFIG.generation.system)
    assert vocabulary.system == CONFIG.generation.system
    assert model.config.num_states == 2 and model.config.channels == 5
    with pytest.raises(ModelChanged, match="another vocabulary"):
        pretrained_params(str(workdir / "weights"), CONFIG.model, Vocabulary())


@pytest.mark.parametrize("how", [{"beams": 16}, {"beams": 0, "samples": 16}])
def test_as_many_complete_equations_as_quantities(proposer, how):
    both = np.stack([PREY, PREDATOR], axis=1)
    alone, pairs = proposer.propose_systems([(T, PREY), (T[:20], both[:20])], **how)
    assert len(alone) > 4 and len(pairs) > 4
    assert {len(laws) for laws, _ in alone} == {1}
    assert {len(laws) for laws, _ in pairs} == {2}
    assert {law.variables for laws, _ in alone for law in laws} == {("y1", "t")}
    assert {law.variables for laws, _ in pairs for law in laws} == {("y1", "y2", "t")}
    scores = [log_probability for _, log_probability in pairs]
    assert scores == sorted(scores, reverse=True) and scores[0] < 0


def test_a_missing_value_is_read_as_missing(proposer):
    both = np.stack([PREY, PREDATOR], axis=1)
    with_gap = both.copy()
    with_gap[3, 1] = np.nan
    whole, gap = proposer.propose_systems([(T, both), (T, with_gap)], beams=4)
    assert gap and gap != whole


def test_a_third_quantity_is_refused(proposer):
    with pytest.raises(ValueError, match="3 quantities, but the network reads no more than 2"):
        proposer.propose_systems([(T, np.ones((T.size, 3)))])


def test_it_is_no_network_for_a_scalar_law(proposer):
    with pytest.raises(WeightsError, match="several quantities or explicit time"):
        proposer.propose([Trajectory(T, PREY)])
