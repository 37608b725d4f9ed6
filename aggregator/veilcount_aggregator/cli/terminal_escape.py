"""Escaping of control characters in terminal output.

A store holds none: definitions and labels with control characters are rejected. A remote server may
send anything.
"""

from __future__ import annotations

import re

#: C0 and C1 controls, line and paragraph separators, bidirectional overrides; newline is allowed
_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def escape_controls(text: str) -> str:
    """Return a text with its control characters spelled out."""
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)
