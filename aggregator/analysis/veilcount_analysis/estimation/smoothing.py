"""Smoothing over time: each figure from its own reports and from those of the times around it.

The model is a local level [Durbin & Koopman 2012, chapter 2]: the true figure moves by independent
steps, and each estimate adds its error, whose size is known. Daily figures have a weekly pattern on
top. It is post-processing, and costs no privacy.

How far the level moves is estimated too, and the likeliest guess is often too small: bands would
miss the jumps. So the largest steps are taken that the likelihood does not reject, which makes
bands too wide rather than too narrow. They cover over all times together, not in each: at a sudden
change the level has not moved far enough [tests/statistical/test_smoothing.py]. Of cycles shorter
than the whole, only the week is modelled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from .confidence_intervals import Floats

FEWEST = 4  # times from which a level is estimated
WEEK = 7
FEWEST_WEEKLY = 2 * WEEK  # and a weekly pattern
UNREJECTED = 1.353  # of the log-likelihood: half of chi^2(1)'s quantile .9, one-sided 5 %
STEPS = np.concatenate([[0.0], np.geomspace(1e-4, 1e3, 36)])  # in variances of one estimate
DIFFUSE = 1e5  # prior variance of an unknown, in squared ranges of the estimates


@dataclass(frozen=True, slots=True)
class Smoother:
    """The smoother of some rows of estimates over equally distant times."""

    variances: Floats  # of each estimate; infinite where there is none
    steps: Floats  # variance of the level's steps, one for each row
    pattern: Floats  # how the figure of each time is made of the state
    prior: Floats  # variance of the state before the first time, one for each row

    @classmethod
    def fit(cls, estimates: Floats, errors: Floats, *, weekly: bool = False) -> Self:
        """Fit rows of independent estimates with standard errors; NaN: none at that time."""
        variances = np.where(np.isnan(estimates), np.inf, errors**2)
        scale = np.nanmedian(np.where(np.isinf(variances), np.nan, variances), axis=1)
        spread = np.nanmax(estimates, axis=1) - np.nanmin(estimates, axis=1)
        pattern = _pattern(estimates.shape[1], weekly=weekly)
        prior = DIFFUSE * (spread**2 + scale)
        candidates = np.outer(scale, STEPS)
        rows = np.repeat(np.arange(len(estimates)), len(STEPS))
        tried = cls(variances[rows], candidates.ravel(), pattern, prior[rows])
        likelihood = tried._likelihood(estimates[rows]).reshape(candidates.shape)
        fits = likelihood >= likelihood.max(axis=1, keepdims=True) - UNREJECTED
        largest = len(STEPS) - 1 - np.argmax(fits[:, ::-1], axis=1)
        return cls(variances, candidates[np.arange(len(largest)), largest], pattern, prior)

    def smooth(self, estimates: Floats) -> tuple[Floats, Floats]:
        """Return smoothed rows, which are linear in the estimates, and their standard errors."""
        states = [(state.mean, state.covariance) for state in self._filter(_centred(estimates))]
        figures, errors = np.empty(estimates.shape), np.empty(estimates.shape)
        later = states[-1]
        for time in reversed(range(len(states))):
            later = self._back(states[time], later) if time < len(states) - 1 else later
            made_of = self.pattern[time]
            figures[:, time] = later[0] @ made_of
            errors[:, time] = np.sqrt(later[1] @ made_of @ made_of)
        return figures + np.nanmean(estimates, axis=1, keepdims=True), errors

    def _back(
        self, state: tuple[Floats, Floats], later: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """Return the state given all estimates, from that of the next time."""
        mean, covariance = state
        ahead = covariance.copy()
        ahead[:, 0, 0] += self.steps
        gain = np.linalg.solve(ahead, covariance).transpose(0, 2, 1)
        moved = (gain @ (later[0] - mean)[..., None])[..., 0]
        return mean + moved, covariance + gain @ (later[1] - ahead) @ gain.transpose(0, 2, 1)

    def _likelihood(self, estimates: Floats) -> Floats:
        """Return the log-likelihood of each row, up to a constant."""
        likelihood = np.zeros(len(estimates))
        for time, state in enumerate(self._filter(_centred(estimates))):
            observed = np.isfinite(self.variances[:, time])
            terms = np.log(state.variance) + state.surprise**2 / state.variance
            likelihood[observed] -= terms[observed] / 2
        return likelihood

    def _filter(self, estimates: Floats) -> Iterator[_State]:
        """Yield the state at each time given the estimates so far [Kalman]."""
        size = self.pattern.shape[1]
        mean = np.zeros((len(estimates), size))
        covariance = self.prior[:, None, None] * np.eye(size)
        for time, made_of in enumerate(self.pattern):
            observed = np.isfinite(self.variances[:, time])
            along = covariance @ made_of
            variance = along @ made_of + self.variances[:, time]
            surprise = np.where(observed, estimates[:, time], 0.0) - mean @ made_of
            gain = along / variance[:, None]
            mean = mean + gain * surprise[:, None]
            covariance = covariance - gain[:, :, None] * along[:, None, :]
            yield _State(mean, covariance, surprise, variance)
            covariance = covariance.copy()
            covariance[:, 0, 0] += self.steps


@dataclass(frozen=True, slots=True)
class _State:
    """What is known at a time, for each row, and how its estimate differed from the forecast."""

    mean: Floats
    covariance: Floats
    surprise: Floats
    variance: Floats  # of the surprise


def _centred(estimates: Floats) -> Floats:
    centred: Floats = estimates - np.nanmean(estimates, axis=1, keepdims=True)
    return centred


def _pattern(times: int, *, weekly: bool) -> Floats:
    """Return what the figure of each time is made of: the level, and of weekly ones the effect of
    the weekday; the seven sum to 0.
    """
    if not weekly:
        return np.ones((times, 1))
    effects = np.vstack([np.eye(WEEK - 1), -np.ones(WEEK - 1)])
    return np.column_stack([np.ones(times), effects[np.arange(times) % WEEK]])
