"""The objection that a browser sends with each request: Global Privacy Control, Do Not Track."""

from __future__ import annotations

from collections.abc import Callable

#: each is 1 or is absent [Global Privacy Control, W3C working draft, 3.1; Tracking Preference
#: Expression, 5.2]; in lower case, as ASGI spells headers
HEADERS = ("sec-gpc", "dnt")


def objects(header: Callable[[str], str | None]) -> bool:
    """Whether a request carries an objection; `header` looks a header up by its name."""
    return any((header(name) or "").strip() == "1" for name in HEADERS)
