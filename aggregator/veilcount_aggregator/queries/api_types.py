"""Types of response fields: they validate, and their schemas are in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

#: an exact number is a decimal in a string: no parser turns it into a float by default
DECIMAL = {"pattern": r"^[0-9]+(\.[0-9]+)?$"}
Decimal = Annotated[str, Meta(extra_json_schema=DECIMAL)]
Count = Annotated[int, Meta(ge=0)]
Counts = dict[str, Count]
