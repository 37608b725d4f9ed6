"""Real people, of Adult, and invented ones of whom the young answer ten times as often."""

from __future__ import annotations

import csv
import gzip
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
ADULT = Path(__file__).parents[1] / "data" / "adult.csv.gz"
CLASSES, LOWEST, HIGHEST = 8, 17, 90
CONSENT = np.linspace(0.5, 0.05, CLASSES)  # of the invented, by class of age


@cache
def adult() -> Ints:
    """How many persons have each age, sex and income."""
    counts = np.zeros((HIGHEST - LOWEST + 1, 2, 2), np.int64)
    with gzip.open(ADULT, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            counts[int(row["age"]) - LOWEST, row["sex"] == "Male", row["income"] == ">50K"] += 1
    return counts


@cache
def invented() -> Ints:
    """The same of 9,000 invented persons who answer."""
    generator = np.random.default_rng(20261128)
    ages = np.clip(generator.gamma(4, 10, 30_000), 0, HIGHEST - LOWEST).astype(np.int64)
    answering = generator.random(len(ages)) < CONSENT[_classes(ages)]
    counts = np.zeros((HIGHEST - LOWEST + 1, 2, 2), np.int64)
    sex, income = generator.integers(0, 2, (2, len(ages)))
    np.add.at(counts, (ages[answering], sex[answering], income[answering]), 1)
    return counts


def by_class(counts: Ints) -> Ints:
    """The same by class of age, of ten years each."""
    classes = np.zeros((CLASSES, 2, 2), np.int64)
    np.add.at(classes, _classes(np.arange(len(counts))), counts)
    return classes


def _classes(ages: Ints) -> Ints:
    return np.minimum(ages // 10, CLASSES - 1)
