"""The search for laws dy/dt = f(y) of given data, and for what their noise is like.

propose (all sources) -> fit, refine and search nearby -> rank -> judge the noise by the
first law -> where it is not alike, weight the data and search on
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.discovery.weighting import Weighting, weighting
from nsode_jax.expressions.expression import ExpressionError
from nsode_jax.fitting.fit import Fit
from nsode_jax.fitting.progress import Progress, silent
from nsode_jax.fitting.trajectory_fitting import polished_fit
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.derivative import derivative_form
from nsode_jax.observed.integral import integral_form
from nsode_jax.observed.noise_scale import expected_noise
from nsode_jax.observed.regression import Regression
from nsode_jax.observed.scaling import AffineView, working_units
from nsode_jax.search.effort import RefineConfig
from nsode_jax.search.own_laws import OwnLaw, OwnLawSource
from nsode_jax.search.refine import fit_asked_for, refine
from nsode_jax.search.sources import CandidateSource, Proposal, Restriction
from nsode_jax.selection.ranking import rank

_ROBUST_ROUNDS = 2
"""The weights of a robust fit are found by a law that outliers may have bent."""

Ranked = list[tuple[Fit, float]]
"""Fitted laws and their scores, best first."""


class DiscoveryError(RuntimeError):
    """No law could be found. The message is one line for the person with the data."""


@dataclasses.dataclass(frozen=True)
class Searched:
    """What a search found.

    Attributes:
      ranked: laws and scores, in working units.
      units: the working units.
      data, form: the data in them, weighted by their noise, and prepared for fitting.
      noise: relative standard deviations of the values, shape [observations]; None if all
        count alike.
      factors: by which a robust fit has made it larger; None for other fits.
      remarks: sentences on the noise for the person with the data.
      tried: what was tried, by source.
      proposed: how many laws were proposed.
    """

    ranked: Ranked
    units: AffineView
    data: Dataset
    form: Regression
    noise: Float[np.ndarray, " observations"] | None
    factors: Float[np.ndarray, " observations"] | None
    remarks: tuple[str, ...]
    tried: tuple[str, ...]
    proposed: int

    def in_given_units(self) -> Ranked:
        """Fits in the units of the data; a law that cannot be written in them is left out."""
        return _in_given_units(self.ranked, self.units)


@dataclasses.dataclass(frozen=True)
class LawSearch:
    """A search with all that it needs but the data, and the prior, which is the one in force.

    Attributes:
      sources: where candidate laws come from.
      config: how they are refined.
      own: laws of the user's own, in the units of the data; each is in the result.
      restriction: what laws may be.
      robust: whether values far from the law count less.
      seed: seed of everything random.
      progress: called with a stage and the share done of it, in [0, 1].
    """

    sources: Sequence[CandidateSource]
    config: RefineConfig
    own: Sequence[OwnLaw] = ()
    restriction: Restriction = dataclasses.field(default_factory=Restriction)
    robust: bool = False
    seed: int = 0
    progress: Progress = silent

    def run(self, given: Dataset, starts: Sequence[float]) -> Searched:
        """Finds laws.

        Args:
          given: series in the units of the user, times counted from the first of each.
          starts: the first time of each series, to name points by their times.

        Raises:
          DiscoveryError: if nothing is proposed.
        """
        units = working_units(given)
        data = units.apply_to(given)
        noise = wide = expected_noise(data.trajectories)
        weighted = data if noise is None else data.with_noise(noise)
        form = data_form(weighted)
        own = OwnLawSource.of([law.in_units(units) for law in self.own], form)
        proposals, tried = self._proposed(weighted, form, own)
        ranked, judged = self._ranked(weighted, form, proposals, own.starts), Weighting(noise, ())
        for _ in range(_ROBUST_ROUNDS if self.robust else 1):
            first, before = _in_given_units(ranked[:1], units), judged.noise
            judged = weighting(given, first, self.robust, starts, wide)
            if judged.noise is before:
                break
            weighted = data if judged.noise is None else data.with_noise(judged.noise)
            form = data_form(weighted)
            # What was found is where the search goes on; the weights change constants, and the
            # order of the best.
            best = [Proposal(fit.expression, fit.origin.of_search) for fit, _ in ranked]
            ranked = self._ranked(weighted, form, [*own.proposals, *best], own.starts)
        noise, remarks, factors = judged
        return Searched(
            ranked, units, weighted, form, noise, factors, remarks, tried, len(proposals)
        )

    def _proposed(
        self, data: Dataset, form: Regression, own: OwnLawSource
    ) -> tuple[list[Proposal], tuple[str, ...]]:
        """What all sources propose, after the user's own laws, and what they tried."""
        sources = [own, *self.sources] if own.starts else self.sources
        proposals: list[Proposal] = []
        tried: list[str] = []
        for source in sources:
            self.progress(f"proposing laws: {source.name}", 0.0)
            proposed = source.propose(data, form, seed=self.seed, progress=self.progress)
            proposals += proposed.laws
            tried.append(proposed.tried)
        if not proposals:
            raise DiscoveryError(
                "No usable law was proposed for this series; allow more: sources, operators, "
                "symbols."
            )
        return proposals, tuple(tried)

    def _ranked(
        self,
        data: Dataset,
        form: Regression,
        proposals: Sequence[Proposal],
        asked_for: Sequence[Sequence[Proposal]],
    ) -> Ranked:
        """What comes of the proposals; those that were asked for stay, the best is fitted fully."""
        fits = refine(
            data,
            form,
            proposals,
            seed=self.seed,
            config=self.config,
            restriction=self.restriction,
            progress=self.progress,
        )
        # The fit may have made a constant of a power that was to vanish at 0.
        vanishing = Restriction(zero_at_zero=self.restriction.zero_at_zero)
        fits = [fit for fit in fits if vanishing.admits(fit.expression)]
        fits += [fit_asked_for(data, form, starts) for starts in asked_for]
        ranked = rank(fits, data, form)
        # Among fits below the floor the first one need not be the one that was taken to its end.
        return [(polished_fit(data, fit), score) for fit, score in ranked[:1]] + ranked[1:]


def data_form(data: Dataset) -> Regression:
    """The data as constants are fitted to them.

    What is told by digits beyond the errors of measurement is not told.
    """
    exact = derivative_form(data) if data.sigma is None else None
    return exact or integral_form(data)


def _in_given_units(ranked: Ranked, units: AffineView) -> Ranked:
    if units.a == units.c == 1.0:
        return list(ranked)
    restored = []
    for fit, score in ranked:
        try:
            expression = units.restore(fit.expression)
        except ExpressionError:
            continue
        y0s = tuple(y0 * units.a for y0 in fit.y0s)
        rms = fit.residual_rms * units.a
        fit = dataclasses.replace(fit, expression=expression, y0s=y0s, residual_rms=rms)
        restored.append((fit, score))
    return restored


__all__ = ["DiscoveryError", "LawSearch", "Ranked", "Searched", "data_form"]
