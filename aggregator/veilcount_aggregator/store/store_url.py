"""The URL of a store: read from a file, and shown without its password."""

from __future__ import annotations

import re
from pathlib import Path

from veilcount_serving.errors import SettingsError, system_reason

#: up to the last @: a password that is not percent-encoded may contain any character
_PASSWORD = re.compile(r"(?<!sqlite)(://[^:@]*):.*@", re.DOTALL)
_QUERIED = re.compile(r"(?<=password=)[^&#]*", re.IGNORECASE)


def redact_url(url: str) -> str:
    """Return a URL with stars for its password."""
    return _QUERIED.sub("***", _PASSWORD.sub(r"\1:***@", url))


def has_password(url: str) -> bool:
    """Whether a URL names a password."""
    return redact_url(url) != url


def read_url_file(file: str, setting: str) -> str:
    """Return the URL that is the one line of a file; errors never repeat the line."""
    try:
        lines = Path(file).read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        fix = "give a text file that this user can read"
        raise SettingsError(setting, file, f"{system_reason(error)}: {fix}") from None
    if len(lines) != 1:
        raise SettingsError(setting, file, "write the store's URL into it, as its one line")
    return lines[0]
