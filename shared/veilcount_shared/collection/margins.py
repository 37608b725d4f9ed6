"""`margins`: the key of a collection whose figures are reweighted to a population."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction

from ..definition_record import Definition, PopulationMargins
from ..domain import is_normalized
from ..errors import DefinitionError
from ..kinds import kind_of
from ..kinds.toml_values import read_named, read_number, read_text
from ..models import TRUST_MODELS
from .texts import MAX_TEXT

WHOLES = (1, 100)  # of shares, and of percentages
TOLERANCE = Fraction(1, 200)  # of the whole: published percentages are rounded
EXAMPLE = 'margins = {age = [40, 60], source = "Census", as_of = 2026-01-01}'


def read_margins(key: str, value: object) -> PopulationMargins:
    """Return the margins of a table: a list for each segment, their source and its day."""
    if not isinstance(value, dict):
        raise DefinitionError(key, value, f"give a table: {EXAMPLE}")
    for name in ("source", "as_of"):
        if name not in value:
            raise DefinitionError(f"{key}.{name}", None, f"this key is missing: {EXAMPLE}")
    categories = {name: entry for name, entry in value.items() if name not in {"source", "as_of"}}
    fix = f"give a list of shares for one segment or several: {EXAMPLE}"
    return PopulationMargins(
        tuple(read_named(key, categories, _read_shares, fix)),
        read_text(f"{key}.source", value["source"]),
        read_day(f"{key}.as_of", value["as_of"]),
    )


def _read_shares(key: str, value: object) -> tuple[Fraction, ...]:
    if not isinstance(value, list):
        raise DefinitionError(key, value, f"give a list of shares: {EXAMPLE}")
    return tuple(read_number(key, share) for share in value)


def read_day(key: str, value: object) -> date:
    """Return a UTC date."""
    if isinstance(value, datetime) or not isinstance(value, date):
        raise DefinitionError(key, value, f"give a UTC date without quotes: {key} = 2026-12-01")
    return value


def check_margins(definition: Definition) -> None:
    """Require a share for each category of segments, and figures that can be reweighted."""
    margins = definition.margins
    if margins is None:
        return
    if TRUST_MODELS[definition.model].reveals:
        fix = "figures of a trusted curator are released as they are: remove margins"
        raise DefinitionError("margins", definition.model.value, fix)
    kind = kind_of(definition.domain, definition.measure)
    if not kind.raked:
        fix = "only for listed values, and true or false: remove margins"
        raise DefinitionError("margins", kind.name, fix)
    if not is_normalized(margins.source, MAX_TEXT):
        fix = f"give one line of 1 to {MAX_TEXT} characters: who counted the population"
        raise DefinitionError("margins.source", margins.source, fix)
    if not margins.shares:
        raise DefinitionError("margins", {}, f"give the shares of a segment: {EXAMPLE}")
    segments = dict(definition.segments)
    for name, shares in margins.shares:
        if name not in segments:
            fix = f"declare it in segments, or leave it out (declared: {', '.join(segments)})"
            fix = fix if segments else "there are no segments: declare it there, in clear"
            raise DefinitionError("margins", name, fix)
        _check_shares(f"margins.{name}", shares, len(segments[name]))


def _check_shares(key: str, shares: tuple[Fraction, ...], categories: int) -> None:
    if len(shares) != categories:
        fix = f"give {categories} shares, one for each value of the segment in its order"
        raise DefinitionError(key, list(shares), fix)
    if min(shares) <= 0:
        fix = "give shares above 0: merge an empty category with another one"
        raise DefinitionError(key, list(shares), fix)
    if not any(abs(sum(shares, Fraction()) / whole - 1) <= TOLERANCE for whole in WHOLES):
        fix = "give shares that sum to 100, or to 1: within half a percent"
        raise DefinitionError(key, list(shares), fix)
