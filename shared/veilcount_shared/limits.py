"""Limits and widths that definitions and reports have in common."""

MAX_SLOTS = 1024
MAX_CELLS = 32
PSEUDONYM_BYTES = 16
TOKEN_BYTES = 256  # of a token, where a report has one
