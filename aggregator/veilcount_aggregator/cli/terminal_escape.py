"""Texts for a terminal, which obeys some letters instead of showing them.

What a store holds has none of those: definitions and labels with one are refused. A server that is
asked may say anything.
"""

from __future__ import annotations

import re

#: controls of both ranges, ends of lines and paragraphs, directions; a line's end is one
_OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Return a text with what a terminal would obey spelled out."""
    return _OBEYED.sub(lambda found: ascii(found[0])[1:-1], text)
