"""The smallest types that answers and doors are made of; they validate, and are in the document."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

#: an exact number is a decimal in a string: no reader makes a float of it unasked
DECIMAL = {"pattern": r"^[0-9]+(\.[0-9]+)?$"}
Decimal = Annotated[str, Meta(extra_json_schema=DECIMAL)]
Count = Annotated[int, Meta(ge=0)]
Counts = dict[str, Count]
