"""`veilcount estimate --counts`, and `veilcount verify` of what `veilcount publish` wrote."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilcount_analysis.simulation import simulate_messages
from veilcount_shared import load_collections

from ...queries.simulated_reports import send_rows
from ...web.api.deployment_fixtures import deployment
from .conftest import Type

OWN = {"unplaced", "losses"}  # what only a server knows of


def figures(document: dict[str, Any]) -> list[Any]:
    return [time_range["figures"] for time_range in document["series"][0]["ranges"]]


def test_counts_of_a_warehouse_give_what_a_store_gives(
    typed: Type, file: str, tmp_path: Path
) -> None:
    """The same reports, counted by an aggregator and grouped by a warehouse."""
    now = datetime.now(UTC)
    inputs = np.repeat([0, 1, 2], [500, 2000, 500])
    theme = load_collections(file)["theme"]
    rows = {arm: simulate_messages(theme, inputs, np.random.default_rng(arm)) for arm in range(2)}
    with deployment(tmp_path, Path(file).read_text(encoding="utf-8"), now=now) as made:
        for arm, messages in rows.items():
            send_rows(made, "theme", messages, segment=arm)
        store = made.aggregator.settings.store
    grouped = [
        {"message": message, "count": count, "arm": "AB"[arm], "period": now.date().isoformat()}
        for arm, messages in rows.items()
        for message, count in Counter(map(theme.unpack, map(bytes, messages))).items()
    ]
    counts = tmp_path / "counts.json"
    counts.write_text(json.dumps(grouped), encoding="utf-8")
    source = ("--counts", str(counts), "--definitions", file)

    for options in ((), ("--segment", "arm:B"), ("--view", "consistent"), ("--level", "0.5")):
        ours = typed("estimate", "theme", *source, "--json", *options).json
        theirs = typed("estimate", "theme", "--store", store, "--json", *options).json
        assert figures(ours) == figures(theirs)
        assert figures(ours)[0], "figures, not two refusals"
    assert "dark" in typed("estimate", "theme", *source).out
    assert typed("estimate", "theme", *source, "--format", "csv").out.startswith("collection,")


def test_a_stranger_verifies_what_was_published(
    typed: Type, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the public key alone; planted: one counter of the file is raised."""
    start = datetime.now(UTC)
    key, site = tmp_path / "publish.key", tmp_path / "site"
    made_key = typed("publish-key", str(key), "--json").json["key"]
    with deployment(tmp_path, Path(file).read_text(encoding="utf-8"), now=start) as made:
        theme = made.series("theme").collection
        inputs = np.repeat([0, 1, 2], [500, 2000, 500])
        send_rows(made, "theme", simulate_messages(theme, inputs, np.random.default_rng(1)))
        store = made.aggregator.settings.store
    over = start + timedelta(days=90)
    monkeypatch.setattr("veilcount_aggregator.operate.cli.options.now", lambda: over)
    options = ("--store", store, "--publish-key", str(key))

    assert typed("publish", str(site), "theme", *options).code == 0
    (counters,) = site.glob("theme/counters-*.json")
    shown = json.loads((site / "theme" / "estimates.json").read_text(encoding="utf-8"))
    for public in (made_key, f"{key}.pub"):
        verified = typed("verify", str(counters), "--key", public, "--json")
        assert (verified.code, figures(verified.json)) == (0, figures(shown))
    assert "signatures: valid" in typed("verify", str(counters), "--key", made_key).out

    document = json.loads(counters.read_text(encoding="utf-8"))
    document["counters"][0][1] += 1
    document["reports"] += 1
    counters.write_text(json.dumps(document), encoding="utf-8")
    refused = typed("verify", str(counters), "--key", made_key)
    assert (refused.code, refused.out) == (2, "")
    assert "its signature is not of this key" in refused.err
    assert typed("verify", str(counters), "--unsigned").code == 0, "what the signature is for"
