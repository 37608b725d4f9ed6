"""`veilcount audit`: claimed against measured, by this machine's randomness (alpha 1e-4 each)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from veilcount_aggregator.operate.cli import audit as command
from veilcount_analysis.audit import known_bugs, small_batches
from veilcount_analysis.audit.batch_bugs import BATCH_BUGS
from veilcount_analysis.privacy.shuffled import cover_delta
from veilcount_shared import Collection, RandomSource
from veilcount_shared.composition import Overlap
from veilcount_shared.mechanisms import HashedStrings, SubsetSelection

from ....client.device_fixtures import definitions_text
from .conftest import Type, Typed


def test_correct_mechanisms_are_not_broken_and_most_of_their_claim_is_seen(
    typed: Type, file: str
) -> None:
    audited = typed("audit", file, "--json")
    theme, _, minutes, crash = audited.json["collections"]

    assert audited.code == 0
    assert 0.7 < theme["measured"] <= theme["claimed"] == 1
    assert 0.3 < minutes["measured"] <= minutes["claimed"] == 0.5
    assert crash["measured"] is None
    assert "true values" in crash["event"]


def test_a_mechanism_that_spends_more_than_it_claims_is_broken(
    typed: Type, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every tenth answer is sent as it is: 1 is claimed, and 1.18 lost."""

    def leaking(collection: Collection, value: object, randomness: RandomSource) -> int:
        place = collection.domain.input(value, randomness)
        return place if randomness.below(10) == 0 else honest(collection, value, randomness)

    honest = Collection.randomize
    monkeypatch.setattr(Collection, "randomize", leaking)

    broken = typed("audit", file, "theme")

    assert broken.code == 1
    assert "never prove it" in broken.out
    assert "alpha = 0.0001" in broken.out
    assert "claim violated: theme" in broken.err
    assert "yes" in broken.out


COMMON = {"model": "shuffled", "epsilon": 4, "unit": "month", "until": "2027-11-01"}


def batch(covers: int) -> dict[str, object]:
    return {"batch": {"epsilon": 1, "delta": 1e-6, "covers": covers}}


def audit_of(typed: Type, folder: Path, covers: int = 110, **more: dict[str, object]) -> Typed:
    file = folder / "shuffled.toml"
    text = definitions_text("acme", COMMON, dark=batch(covers), **more)
    file.write_text(text, encoding="utf-8")
    return typed("audit", str(file), "--samples", "4000", "--json")


def test_small_batches_are_enumerated_and_one_cover_too_few_is_refused(
    typed: Type, tmp_path: Path
) -> None:
    """Presence is hidden: three cells, which take 110 covers."""
    enough, few = audit_of(typed, tmp_path), audit_of(typed, tmp_path, covers=109)
    (batch,) = enough.json["batches"]

    assert (enough.code, batch["broken"], batch["needed"]) == (0, False, 110)
    assert len(batch["checks"]) == 32
    assert all(row["exact"] <= row["bound"] for row in batch["checks"])
    assert few.code == 1
    assert "claim violated: batches of dark (109 covers, 110 needed)" in few.err


def test_covers_that_are_all_alike_refute_the_bound(
    typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a shuffler whose covers are all of one value."""
    monkeypatch.setattr(SubsetSelection, "cover", lambda *_: 0)
    refuted = audit_of(typed, tmp_path)

    assert refuted.code == 1
    assert refuted.json["batches"][0]["broken"]


def test_an_accounting_that_counts_a_cover_too_many_is_refuted(
    typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_more(overlaps: Sequence[Overlap], covers: int, epsilon: float) -> float:
        return cover_delta(overlaps, covers + 1, epsilon)

    monkeypatch.setattr(small_batches, "cover_delta", one_more)

    assert "claim violated: batches of dark" in audit_of(typed, tmp_path).err


@pytest.mark.parametrize("planted", [False, True])
def test_batches_of_too_many_outcomes_are_counted_by_classes(
    typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, planted: bool
) -> None:
    """Planted: covers of the first part alone, all of one message."""
    if planted:
        monkeypatch.setattr(HashedStrings, "cover", lambda *_: 0)
    strings = batch(463) | {"values": "open", "presence": "public"}
    audited = audit_of(typed, tmp_path, word=strings)
    every, by_classes = audited.json["batches"]

    assert (every["counted_by"], by_classes["counted_by"]) == ("outcomes", "classes")
    assert len(by_classes["checks"]) == 32
    assert (by_classes["broken"], audited.code) == (planted, int(planted))
    assert ("covers have another distribution" in by_classes["closest"]) is planted


BUG = replace(known_bugs.BUGS["last bit in clear (infinite)"], samples=2_000)


def test_the_self_test_detects_planted_bugs_and_not_their_repairs(
    typed: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "BUGS", {"planted": BUG})
    tested = typed("audit", "--self-test", "--json")
    (found,) = tested.json["self_test"]

    assert tested.code == 0
    assert (found["bug"], found["caught"], found["repaired"]["broken"]) == ("planted", True, False)
    batches = tested.json["self_test_batches"]
    assert [row["bug"] for row in batches] == list(BATCH_BUGS)
    assert all(row["caught"] and not row["repaired"]["broken"] for row in batches)


def test_a_self_test_that_misses_a_bug_fails(typed: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    def plant(randomness: RandomSource, *, repaired: bool) -> known_bugs.Emit:
        del repaired
        return BUG.plant(randomness, repaired=True)

    monkeypatch.setattr(command, "BUGS", {"missed": replace(BUG, plant=plant)})
    tested = typed("audit", "--self-test")

    assert tested.code == 1
    assert "the self-test failed: missed" in tested.err
