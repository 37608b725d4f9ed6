"""Files and stores for the analyst's commands: definitions, and answers of known truth."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from veilcount_aggregator.analysis.simulation import simulate_messages
from veilcount_aggregator.catalog.definitions import add_definitions, read_source
from veilcount_aggregator.series.series import Series
from veilcount_aggregator.store import CODES, ROW_BYTES, Codes, SeriesReports, open_store
from veilcount_shared import load_collections
from veilcount_shared.verdict import Verdict

FILE = """
app = "acme-editor"

[theme]
question = "Which theme is active?"
values = ["light", "dark", "system"]
epsilon = 1
unit = "user"
from = {start}
until = {until}
segments = {{arm = ["A", "B"]}}
owner = "privacy@acme.example"
purpose = "To choose the default theme."

[minutes]
question = "How long was this session?"
range = [0, 240]
measure = "mean"
epsilon = 0.5
unit = "event"
per_day = 4
answers = 7
from = {start}
until = {until}

[crash]
question = "Did it crash?"
boolean = true
model = "central"
budget = 1
unit = "month"
from = {start}
until = {until}
"""
TRUTH = (0.2, 0.7, 0.1)  # light, dark, system
PEOPLE = 4_000  # in each arm


def written(folder: Path) -> Path:
    start = datetime.now(UTC).date() - timedelta(days=10)
    file = folder / "analyst.toml"
    file.write_text(FILE.format(start=start, until=start + timedelta(days=60)), encoding="utf-8")
    return file


def filled(folder: Path, file: Path, seed: int = 7) -> str:
    """Make a store in which both arms have answered `theme`, with the same truth."""
    url = f"sqlite:///{folder}/filled.db"
    store = open_store(url, make=True)
    add_definitions(store, read_source(file), datetime.now(UTC), "test")
    which = Series(load_collections(file)["theme"])
    generator = np.random.default_rng(seed)
    inputs = np.repeat(np.arange(len(TRUTH)), [round(share * PEOPLE) for share in TRUTH])
    for arm in (0, 1):
        sent = simulate_messages(which.collection, inputs, generator)
        codes = store.commit([_spends(which, sent, arm, generator)], {})[0]
        assert (codes == CODES[Verdict.COUNTED]).all()
    store.close()
    return url


def _spends(
    which: Series, sent: Codes, segment: int, generator: np.random.Generator
) -> SeriesReports:
    """Return messages as reports of the first period, each by somebody new."""
    none = np.zeros(len(sent), np.int64)
    return SeriesReports(
        series=which,
        rows=generator.integers(256, size=(len(sent), ROW_BYTES)).astype(np.uint8),
        epochs=none,
        periods=none,
        segments=none + segment,
        slots=none,
        messages=sent,
        default_verdicts=np.full(len(sent), CODES[Verdict.COUNTED], np.uint8),
        new_pseudonym_limit=1 << 40,
    )
