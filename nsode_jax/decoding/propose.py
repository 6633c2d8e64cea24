"""Candidate laws for trajectories: the pretrained model, its decoders, its vocabulary."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Float

from nsode_jax.data.encode import encode_trajectories
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.decoding.beam_search import beam_search
from nsode_jax.decoding.grammar import TokenTable, constant_modes, soft_token
from nsode_jax.decoding.sampling import PLAIN, Sampling, sample
from nsode_jax.decoding.steps import BeamResult, Decoding, StepFn
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.coupled import SCALAR, joined
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.expressions.operators import CONSTANT
from nsode_jax.modeling.pretrained import WeightsError, load_pretrained
from nsode_jax.modeling.transformer import Model, Params

Series = tuple[Float[np.ndarray, " time"], Float[np.ndarray, "time ..."]]
"""Times, and values of one or several quantities."""

_SAME_CONSTANT = 0.01
"""Part of a grid step by which constants of one law may differ that beam search and sampling
write: each computes in an order of its own, on accelerators in half precision."""

_BEAMS = "beams"
"""Axis of the devices over which beams and samples are spread."""


def token_table(vocabulary: Vocabulary) -> TokenTable:
    """What the decoders must know about the vocabulary."""
    return TokenTable(
        arities=vocabulary.arities,
        bos=vocabulary.bos,
        eos=vocabulary.eos,
        pad=vocabulary.pad,
        grid_start=vocabulary.grid_start,
        grid_size=vocabulary.grid_size,
        states=vocabulary.variables[: vocabulary.system.num_states],
        separator=vocabulary.separator,
    )


class NextToken(NamedTuple):
    """What a network would write at one place of a law.

    Attributes:
      token: what the law has there; a constant counts with all grid tokens of its mode.
      probability: of that.
      others: the likeliest tokens and their probabilities, best first.
    """

    token: str
    probability: float
    others: tuple[tuple[str, float], ...]


class Proposer:
    """Writes candidate right-hand sides for trajectories with a pretrained model."""

    def __init__(
        self,
        model: Model,
        params: Params,
        vocabulary: Vocabulary,
        card: dict[str, Any],
        *,
        devices: Sequence[Any] | None = None,
    ):
        """
        Args:
          model: the network.
          params: its parameters.
          vocabulary: of its decoder.
          card: what is known about the weights.
          devices: beams and samples are computed on all of them, as far as their
            number divides by it. By default the local accelerators, or the CPU.
        """
        self.model, self.params, self.vocabulary, self.card = model, params, vocabulary, card
        self._table = token_table(vocabulary)
        local = jax.local_devices()
        self._devices = list(devices or (local[:1] if local[0].platform == "cpu" else local))

    @classmethod
    def from_pretrained(cls, name_or_path: str | Path) -> Proposer:
        """Shipped weights by name, or the folder of exported ones.

        Raises:
          WeightsError: if they are missing, damaged, or of another version.
        """
        return cls(*load_pretrained(name_or_path))

    def propose(
        self,
        trajectories: Sequence[Trajectory],
        *,
        beams: int = 64,
        samples: int = 0,
        sampling: Sampling = PLAIN,
        seed: int = 0,
    ) -> list[list[tuple[Expression, float]]]:
        """Candidates of each trajectory with their log-probability, best first.

        A constant counts with the probability of all grid tokens of its mode
        (`grammar.constant_modes`), whether its law comes from the beam or was drawn.

        Args:
          trajectories: in the range the model was trained on, t from 0 to 4 at
            most and y around -5 to 5; all are decoded as one batch.
          beams: width of the beam search; 0 for none.
          samples: candidates drawn beside those of the beam.
          sampling: how they are drawn: temperature, top-k, nucleus.
          seed: of the samples.

        Returns:
          For each trajectory its candidates without repetitions.

        Raises:
          WeightsError: if the network is one for systems.
        """
        if self.vocabulary.system != SCALAR:
            raise WeightsError(
                "these weights are of a network for several quantities or explicit time "
                "(`propose_systems`); here those of one for dy/dt = f(y) are needed"
            )
        series = [(x.t, x.y) for x in trajectories]
        found = self.propose_systems(
            series, beams=beams, samples=samples, sampling=sampling, seed=seed
        )
        return [[(law, log_p) for (law,), log_p in candidates] for candidates in found]

    def propose_systems(
        self,
        series: Sequence[Series],
        *,
        beams: int = 64,
        samples: int = 0,
        sampling: Sampling = PLAIN,
        seed: int = 0,
    ) -> list[list[tuple[tuple[Expression, ...], float]]]:
        """Candidates of each series with their log-probability, best first.

        Args:
          series: t [time] and values [time, states], or [time] of one quantity, NaN where
            one is missing; in the range of `propose`. They may differ in their number of
            quantities, up to that of the network.
          beams, samples, sampling, seed: as for `propose`.

        Returns:
          For each series its candidates without repetitions: an equation for each of
          its quantities, y1, y2, ... where the network reads several.

        Raises:
          ValueError: if a series has more quantities than the network reads.
        """
        if not series:
            return []
        words, mask, states = self._encoded(series)
        results = []
        if beams:
            results.append(self._beams(words, mask, states, beams, constrained=True))
        if samples:
            spread, params = self._spread(samples)
            fixed = self.model, self._table, samples, spread, sampling
            key = jax.random.key(seed)
            results.append(_sample(*fixed, params, words, mask, key, states))
        results = jax.device_get(results)
        return [self._candidates(results, row) for row in range(len(series))]

    def propose_freely(
        self, trajectories: Sequence[Trajectory], *, beams: int
    ) -> list[list[Expression | None]]:
        """Candidates of each trajectory by the paper's beam search, best first.

        Nothing forbids what is no formula, and every token of the grid counts for itself.

        Args:
          trajectories: as for `propose`.
          beams: width of the beam search.

        Returns:
          For each trajectory its finished beams as written: repetitions stay, and None
          stands for a beam that is not one complete formula.
        """
        if not trajectories:
            return []
        encoded = self._encoded([(x.t, x.y) for x in trajectories])
        result = jax.device_get(self._beams(*encoded, beams, constrained=False))
        written = (self._written(result, row) for row in range(len(trajectories)))
        return [
            [laws[0] if laws and len(laws) == 1 else None for laws, _ in row] for row in written
        ]

    def token_probabilities(
        self, trajectory: Trajectory, law: Expression, most: int = 5
    ) -> list[NextToken]:
        """What the network would write at each place of a law, the places before it given.

        Args:
          trajectory: as for `propose`.
          law: that it reads, token by token.
          most: alternatives at each place.

        Returns:
          An entry for each token of the law in prefix notation, and one for its end. The sum
          of their log-probabilities is that of the law.

        Raises:
          NotEncodable: if the network cannot write the law.
        """
        vocabulary, table = self.vocabulary, self._table
        low, fraction = vocabulary.encode(law, self.model.config.max_length)
        length = len(law.prefix) + 1
        given = np.concatenate([[table.bos], low[:-1]]), np.concatenate([[0.0], fraction[:-1]])
        inputs = [values[None].astype(kind) for values, kind in zip(given, (np.int32, np.float32))]
        words, mask, _ = self._encoded([(trajectory.t, trajectory.y)])
        read = _read(self.model, table, self.params, words, mask, *inputs)
        mass, is_top, lows, fractions = (np.asarray(part)[0, :length] for part in read)
        # Where the two tokens of a constant are of two modes, that which is likelier.
        pair = np.stack([low[:length], low[:length] + (fraction[:length] > 0.0)], axis=-1)
        log_probabilities = np.max(np.take_along_axis(mass, pair, axis=-1), axis=-1)
        found = []
        for place, (log_probability, tops) in enumerate(zip(mass, is_top)):
            likeliest = [i for i in np.argsort(-log_probability) if tops[i]][:most]
            others = tuple(
                (
                    self._named(lows[place, i], fractions[place, i]),
                    float(np.exp(log_probability[i])),
                )
                for i in likeliest
            )
            token = self._named(low[place], fraction[place])
            probability = float(np.exp(log_probabilities[place]))
            found.append(NextToken(token, probability, others))
        return found

    def _named(self, low: int, fraction: float) -> str:
        """A soft token as people read it."""
        if low < self.vocabulary.grid_start:
            return self.vocabulary.symbols[low]
        return f"{self.vocabulary.constant(int(low), float(fraction)):.3g}"

    def _encoded(
        self, series: Sequence[Series]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Model input, and the numbers of quantities if they may differ.

        Batches are filled up to a power of two, as each size is compiled.
        """
        filled = [*series, *[series[-1]] * (_power_of_two(len(series)) - len(series))]
        words, mask = encode_trajectories(filled, self.model.config.example_format)
        if self._table.separator is None:
            return words, mask, None
        states = [1 if y.ndim == 1 else y.shape[1] for _, y in filled]
        return words, mask, np.array(states, np.int32)

    def _beams(self, words, mask, states, beams: int, *, constrained: bool) -> BeamResult:
        spread, params = self._spread(beams)
        fixed = self.model, self._table, beams, spread, constrained
        return _beam(*fixed, params, words, mask, states)

    def _spread(self, rows: int) -> tuple[NamedSharding, Params]:
        """How [batch, rows] is split over devices, and the parameters on each of them."""
        mesh = Mesh(np.array(self._devices[: math.gcd(rows, len(self._devices))]), (_BEAMS,))
        # On the devices from now on; nothing moves if they are there already.
        self.params = jax.device_put(self.params, NamedSharding(mesh, PartitionSpec()))
        return NamedSharding(mesh, PartitionSpec(None, _BEAMS)), self.params

    def _candidates(
        self, results: list[BeamResult], row: int
    ) -> list[tuple[tuple[Expression, ...], float]]:
        """Laws of several results, the likeliest of those that differ in rounding alone."""
        written = (pair for result in results for pair in self._written(result, row))
        found = [(laws, log_p) for laws, log_p in written if laws is not None]
        near = _SAME_CONSTANT * (self.vocabulary.grid[1] - self.vocabulary.grid[0])
        kept: dict[tuple[str, ...], list[np.ndarray]] = {}
        candidates = []
        for laws, log_p in sorted(found, key=lambda pair: -pair[1]):
            tokens = joined(law.prefix for law in laws)
            form = tuple(token if isinstance(token, str) else CONSTANT for token in tokens)
            constants = np.array([token for token in tokens if not isinstance(token, str)])
            others = kept.setdefault(form, [])
            if not any(np.all(np.abs(constants - other) < near) for other in others):
                others.append(constants)
                candidates.append((laws, log_p))
        return candidates

    def _written(
        self, result: BeamResult, row: int
    ) -> Iterator[tuple[tuple[Expression, ...] | None, float]]:
        """What the finished beams of a trajectory say, None for what is no formula."""
        for low, fraction, log_probability in zip(
            result.low[row], result.fraction[row], result.log_probability[row], strict=True
        ):
            if not np.isfinite(log_probability):
                continue
            try:
                laws = self.vocabulary.decode_system(low, fraction)
            except ExpressionError:
                laws = None
            yield laws, float(log_probability)


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _step_fn(model: Model, params: Params, memory: Any, spread: NamedSharding) -> StepFn:
    """The model's step: beams are split over devices, the cache is whole on each."""
    whole = NamedSharding(spread.mesh, PartitionSpec())

    def step(cache, ancestors, low, fraction, position):
        ancestors, low, fraction = jax.lax.with_sharding_constraint(
            (ancestors, low, fraction), spread
        )
        result = model.step(params, memory, cache, ancestors, low, fraction, position)
        return jax.lax.with_sharding_constraint(result, whole)

    return step


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3, 4))
def _beam(
    model: Model,
    table: TokenTable,
    beams: int,
    spread: NamedSharding,
    constrained: bool,
    params,
    words,
    mask,
    states=None,
) -> BeamResult:
    decoding = Decoding(
        table, words.shape[0], model.config.max_length, constrained, constrained, states
    )
    memory = model.encode(params, words, mask)
    cache = model.init_cache(decoding.batch, beams)
    return beam_search(_step_fn(model, params, memory, spread), cache, decoding, beams)


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3, 4))
def _sample(
    model: Model,
    table: TokenTable,
    samples: int,
    spread: NamedSharding,
    sampling: Sampling,
    params,
    words,
    mask,
    key,
    states=None,
) -> BeamResult:
    decoding = Decoding(
        table, words.shape[0], model.config.max_length, merge_constants=True, states=states
    )
    memory = model.encode(params, words, mask)
    cache = model.init_cache(decoding.batch, samples)
    step_fn = _step_fn(model, params, memory, spread)
    return sample(step_fn, cache, key, decoding, samples, sampling)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _read(model: Model, table: TokenTable, params, words, mask, low, fraction):
    """Log-probabilities of what follows each position, tops of modes, and all soft tokens."""
    logits = model.decode(params, model.encode(params, words, mask), low, fraction)
    log_probability = jax.nn.log_softmax(logits)
    every = jax.vmap(soft_token, in_axes=(None, 0, None), out_axes=-1)
    shape = log_probability.shape[:-1]
    tokens = jax.numpy.broadcast_to(
        jax.numpy.arange(table.size)[:, None, None], (table.size, *shape)
    )
    return (*constant_modes(log_probability, table), *every(log_probability, tokens, table))
