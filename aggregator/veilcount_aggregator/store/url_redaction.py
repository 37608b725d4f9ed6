"""Redaction of passwords in store URLs."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_QUERIED = re.compile(r"(?<=password=)[^&#]*", re.IGNORECASE)


def redact_url(url: str) -> str:
    """Return a URL with stars for its password."""
    password = urlsplit(url).password
    bare = url.replace(f":{password}@", ":***@", 1) if password else url
    return _QUERIED.sub("***", bare)
