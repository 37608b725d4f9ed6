"""Types of command-line parameters, and collections of a definitions file by name."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from veilcount_shared import Collection, load_collections
from veilcount_shared.collection.toml import MAX_ABSOLUTE
from veilcount_shared.epsilon import parse_epsilon
from veilcount_shared.errors import VeilcountError

Family = Mapping[str, Collection]


class ExactNumber(click.ParamType[Fraction]):
    """An exact decimal or ratio: 0.7 is 7/10."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        """Return the number."""
        try:
            number = Fraction(value)
        except (ValueError, ZeroDivisionError):
            self.fail(f"{value!r} is not a number: write it like 0.5", param, ctx)
        if abs(number) >= MAX_ABSOLUTE:
            self.fail(f"{value!r} is too large", param, ctx)
        return number


class Epsilon(ExactNumber):
    """An epsilon in the supported range."""

    name = "epsilon"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        """Return the epsilon."""
        try:
            return parse_epsilon(super().convert(value, param, ctx))
        except VeilcountError as error:
            self.fail(str(error), param, ctx)


class Proportion(ExactNumber):
    """A number between 0 and 1: a level, a delta."""

    name = "proportion"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        """Return the proportion."""
        proportion = super().convert(value, param, ctx)
        if not 0 < proportion < 1:
            self.fail(f"{value} is not between 0 and 1", param, ctx)
        return proportion


EXACT, EPSILON, PROPORTION = ExactNumber(), Epsilon(), Proportion()
COUNT = click.IntRange(1, 10**9 - 1)


def find_collection(family: Family, wanted: str) -> Collection:
    """Return a collection by its name, or suggest the closest one."""
    if wanted not in family:
        known = list(family)
        near = get_close_matches(wanted, known, 1, cutoff=0.5)
        listed = f"its collections are {', '.join(known)}" if known else "it has none"
        meant = f"did you mean {near[0]}?" if near else listed
        raise click.BadParameter(f"no collection is named {wanted!r}: {meant}", param_hint="NAME")
    return family[wanted]


def load_collection(path: Path, wanted: str) -> Collection:
    """Return one collection of a file."""
    return find_collection(load_collections(path), wanted)
