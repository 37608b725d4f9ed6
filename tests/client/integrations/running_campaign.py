"""The definitions of an app whose campaign runs today and for decades."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from veilcount_shared import parse_collections

TODAY = datetime.now(UTC).date() - timedelta(days=1)
FILE = f"""
app = "acme-editor"

[theme]
question = "Which theme is active?"
values = ["light", "dark", "system"]
epsilon = 1
unit = "user"
from = {TODAY}
until = {TODAY + timedelta(days=30_000)}

[minutes]
question = "How long was it used?"
range = [0, 240]
measure = "mean"
takes = "sum"
held = "process"
epsilon = 1
unit = "user"
from = {TODAY}
until = {TODAY + timedelta(days=30_000)}
"""  # the sum is held for decades: it is stored at the end of its process, or never
COLLECTIONS = parse_collections(FILE, lambda _: [])
