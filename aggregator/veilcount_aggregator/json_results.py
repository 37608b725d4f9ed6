"""JSON of results: exact numbers are decimals in strings.

The types of fields validate, and their schemas are in the OpenAPI document.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, TypeVar

import msgspec

from veilcount_analysis.text.number_format import decimal

from .errors import StoreUnavailable

T = TypeVar("T")

#: no parser turns it into a float by default
DECIMAL = {"pattern": r"^[0-9]+(\.[0-9]+)?$"}
Decimal = Annotated[str, msgspec.Meta(extra_json_schema=DECIMAL)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Counts = dict[str, Count]


def encode(answer: object) -> bytes:
    """Return a result as JSON."""
    return msgspec.json.encode(answer, enc_hook=_exactly)


def plain(answer: object) -> Any:
    """Return a result as JSON-compatible dicts and lists."""
    return msgspec.json.decode(encode(answer))


def decoded(document: object, kind: type[T]) -> T:
    """Return a result from its JSON-compatible dicts and lists, of a server of this release."""
    try:
        return msgspec.convert(document, kind, dec_hook=_from_json)
    except msgspec.ValidationError as error:
        why = f"the server's response is not one of this release: {error}"
        raise StoreUnavailable(why) from error


def schema_of(kind: type) -> dict[str, Any]:
    """Return the schema of an exact number."""
    if kind is Fraction:
        return {"type": "string", **DECIMAL}
    raise NotImplementedError(kind)


def _exactly(value: object) -> str:
    if isinstance(value, Fraction):
        return decimal(value)
    raise NotImplementedError(type(value))


def _from_json(kind: type, value: object) -> object:
    if kind is Fraction:
        return Fraction(str(value))
    raise NotImplementedError(kind)
