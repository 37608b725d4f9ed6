"""The definitions of an app, in the middle of their campaign."""

from __future__ import annotations

from datetime import UTC, datetime

FILE = """
app = "acme-editor"

[theme]
question = "Which theme is active?"
values = ["light", "dark", "system"]
epsilon = 1
unit = "month"
from = 2026-11-01
until = 2027-05-01

[saved]
question = "Was the file saved?"
boolean = true
epsilon = 0.5
unit = "event"
per_day = 2
from = 2026-11-01
until = 2027-05-01
answers = 2
"""
NOW = datetime(2026, 12, 3, 12, tzinfo=UTC)
