"""The tree of exceptions.

VeilcountError
  x InexactError             a float where an exact number is needed
  x EpsilonError             an epsilon that cannot be claimed
  x DefinitionError          a collections file: the key, its value, the fix
  x UnknownSegment           a segment that is missing, undeclared or of an unlisted value
  x TrustModelError          an answer in clear where noise was asked for, or the reverse
  + WireError                bytes that are no batch, and where
    x UnknownVersion
    x WrongLength            too short, too long, too many
    x BadField               a field that is missing, unknown, of another type or out of range
  + ReportError              a report that its definition refuses
    x MessageOutOfRange

Each carries its data. None ever carries a person's value.
"""

from __future__ import annotations

import json
from datetime import date, time
from fractions import Fraction


class VeilcountError(Exception):
    """The base of all errors that veilcount defines."""


class InexactError(VeilcountError, TypeError):
    """Not an exact number: a float, a bool, or text that is no number."""

    def __init__(self, number: object) -> None:
        super().__init__(
            f"{format_value(number)} is not exact:"
            " write an int, a Fraction or a string such as '0.7'"
        )
        self.number = number


class EpsilonError(VeilcountError, ValueError):
    """An epsilon that cannot be claimed."""

    def __init__(self, epsilon: Fraction, fix: str) -> None:
        super().__init__(f"epsilon = {format_value(epsilon)}: {fix}")
        self.epsilon = epsilon
        self.fix = fix


class DefinitionError(VeilcountError, ValueError):
    """An invalid definition: the key, its value, and what to write instead."""

    def __init__(
        self, key: str, value: object, fix: str, *, collection: str = "", file: str = ""
    ) -> None:
        place = " ".join(part for part in (file, f"[{collection}]" if collection else "") if part)
        super().__init__(f"{place + ': ' if place else ''}{key} = {format_value(value)}: {fix}")
        self.key = key
        self.value = value
        self.fix = fix
        self.collection = collection
        self.file = file

    def with_location(self, *, collection: str = "", file: str = "") -> DefinitionError:
        """Return the same error with the collection or file that only the caller knows."""
        return DefinitionError(
            self.key,
            self.value,
            self.fix,
            collection=self.collection or collection,
            file=self.file or file,
        )


class UnknownSegment(VeilcountError, ValueError):
    """A segment that is missing, that is not declared, or whose value is not listed."""

    def __init__(
        self, collection: str, name: str, problem: str, labels: tuple[str | int, ...] = ()
    ) -> None:
        super().__init__(f"{collection}: segment {name!r} {problem}")
        self.collection = collection
        self.name = name
        self.problem = problem
        self.labels = labels  # the listed values, if the given one is not among them


class TrustModelError(VeilcountError, ValueError):
    """A method of the other trust model: a true value under the local model, or the reverse."""

    def __init__(self, collection: str, fix: str) -> None:
        super().__init__(f"{collection}: {fix}")


class WireError(VeilcountError, ValueError):
    """Bytes that are not a valid batch."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, problem)
        self.place = place
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


class UnknownVersion(WireError):
    """An unsupported protocol version."""


class WrongLength(WireError):
    """Too short, too long, too many."""


class BadField(WireError):
    """A field that is missing, unknown, of another type or out of its range."""


class ReportError(VeilcountError, ValueError):
    """A report that its definition rejects."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


class MessageOutOfRange(ReportError):
    """A message of the wrong width, or not valid for the mechanism."""


class TokenError(VeilcountError, ValueError):
    """A key, a list of keys or a signature that is not what it should be."""

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(f"{what}: {problem}")
        self.what = what
        self.problem = problem


class ObliviousError(VeilcountError, ValueError):
    """Bytes that are no oblivious message, or none for this key."""

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(f"{what}: {problem}")


class UnknownKey(ObliviousError):
    """A request under a key, or for algorithms, that the gateway does not have."""

    def __init__(self) -> None:
        super().__init__("key", "the gateway does not have it")


DECIMAL_PLACES = 18  # of rho and delta, which are small
MAX_ITEMS = 20


def format_value(value: object, most: int = 80) -> str:
    """Return a definition's value as its author wrote it, cut to a readable length."""
    text = _toml(value)
    return text if len(text) <= most else text[: most - 3] + "..."


def format_types(value: object, labels: tuple[str | int, ...]) -> str:
    """Name the type of a value and, if it is another one, that of the listed labels."""
    value_type, label_type = type(value).__name__, type(labels[0]).__name__
    difference = "" if value_type == label_type else f"; the listed values are {label_type}"
    return f"got {value_type}{difference}"


def _toml(value: object) -> str:  # noqa: PLR0911 - one return a type
    try:
        match value:
            case None:
                return "(missing)"
            case bool():
                return str(value).lower()
            case Fraction():
                return _decimal(value)
            case str():
                return _quoted(value[:1000])
            case list() | tuple():
                more = ["..."] if len(value) > MAX_ITEMS else []
                return f"[{', '.join([*map(_toml, value[:MAX_ITEMS]), *more])}]"
            case dict():
                pairs = (f"{key} = {_toml(item)}" for key, item in list(value.items())[:MAX_ITEMS])
                return f"{{{', '.join(pairs)}}}"
            case date() | time():
                return str(value)
        return repr(value)
    except ValueError:  # Python refuses to write integers of thousands of digits
        return "(a number of thousands of digits)"


def _quoted(text: str) -> str:
    """Return a string in quotes, with what cannot be seen escaped."""
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in plain)


def _decimal(number: Fraction) -> str:
    """Return a Fraction as a decimal where so many places hold it."""
    grains = number * 10**DECIMAL_PLACES
    if grains.denominator != 1:
        return str(number)
    whole, rest = divmod(abs(grains.numerator), 10**DECIMAL_PLACES)
    sign = "-" if number < 0 else ""
    return f"{sign}{whole}" + f".{rest:0{DECIMAL_PLACES}}".rstrip("0").rstrip(".")
