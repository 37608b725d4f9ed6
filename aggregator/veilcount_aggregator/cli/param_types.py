"""What the analyst's commands are given: a definitions file, a collection's name, exact numbers."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from veilcount_shared import Collection, load_collections
from veilcount_shared.collection.toml import LARGE
from veilcount_shared.epsilon import parse_epsilon
from veilcount_shared.errors import VeilcountError

from ..text.byte_sizes import parse_bytes
from . import name_completion

Family = Mapping[str, Collection]


class ExactNumber(click.ParamType[Fraction]):
    """A number as it is written: 0.7 is 7/10."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        """Return the number."""
        try:
            number = Fraction(value)
        except (ValueError, ZeroDivisionError):
            self.fail(f"{value!r} is no number: write it like 0.5", param, ctx)
        if abs(number) >= LARGE:
            self.fail(f"{value!r} is too large", param, ctx)
        return number


class Epsilon(ExactNumber):
    """An epsilon that can be claimed."""

    name = "epsilon"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        """Return the epsilon."""
        try:
            return parse_epsilon(super().convert(value, param, ctx))
        except VeilcountError as error:
            self.fail(str(error), param, ctx)


class Share(ExactNumber):
    """A number between 0 and 1: a level, a delta."""

    name = "share"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        """Return the share."""
        share = super().convert(value, param, ctx)
        if not 0 < share < 1:
            self.fail(f"{value} is not between 0 and 1", param, ctx)
        return share


class ByteSize(click.ParamType[int]):
    """A size in bytes: 256MB, 2GB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes."""
        try:
            return parse_bytes(str(value))
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


BYTES = ByteSize()
EXACT, EPSILON, SHARE = ExactNumber(), Epsilon(), Share()
COUNT = click.IntRange(1, 10**9 - 1)

file = click.argument("file", type=click.Path(path_type=Path))
name = click.argument("name", shell_complete=name_completion.of_file)
level = click.option(
    "--level",
    type=SHARE,
    default="0.95",
    show_default=True,
    help="With which chance an interval covers.",
)


def one_of(family: Family, wanted: str) -> Collection:
    """Return a file's collection by its name, or say which name was meant."""
    if wanted not in family:
        known = list(family)
        near = get_close_matches(wanted, known, 1, cutoff=0.5)
        listed = f"its collections are {', '.join(known)}" if known else "it has none"
        meant = f"did you mean {near[0]}?" if near else listed
        raise click.BadParameter(f"no collection is named {wanted!r}: {meant}", param_hint="NAME")
    return family[wanted]


def load(path: Path, wanted: str) -> Collection:
    """Return one collection of a file."""
    return one_of(load_collections(path), wanted)
