"""The definitions of an app whose campaign runs today and for decades."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from veilcount_shared import parse_collections

from ..device_fixtures import definitions_text

TODAY = datetime.now(UTC).date() - timedelta(days=1)
DATES = {"unit": "user", "from": TODAY, "until": TODAY + timedelta(days=30_000)}
#: the sum is held for decades: it is stored at the end of its process, or never
HELD = {"range": [0, 240], "measure": "mean", "takes": "sum", "held": "process"}
THEME = {"question": "Which theme is active?", "values": ["light", "dark", "system"]}
FILE = definitions_text("acme-editor", theme=THEME | DATES, minutes=HELD | DATES)
COLLECTIONS = parse_collections(FILE, lambda _: [])
