"""`veilcount audit`: claimed against measured, by this machine's randomness (alpha 1e-4 each)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from veilcount_aggregator.operate.cli import audit as command
from veilcount_analysis.audit import known_bugs
from veilcount_shared import Collection, RandomSource

from .conftest import Type


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


BUG = replace(known_bugs.BUGS["last bit in clear (infinite)"], samples=2_000)


def test_the_self_test_detects_planted_bugs_and_not_their_repairs(
    typed: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "BUGS", {"planted": BUG})
    tested = typed("audit", "--self-test", "--json")
    (found,) = tested.json["self_test"]

    assert tested.code == 0
    assert (found["bug"], found["caught"], found["repaired"]["broken"]) == ("planted", True, False)


def test_a_self_test_that_misses_a_bug_fails(typed: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    def plant(randomness: RandomSource, *, repaired: bool) -> known_bugs.Emit:
        del repaired
        return BUG.plant(randomness, repaired=True)

    monkeypatch.setattr(command, "BUGS", {"missed": replace(BUG, plant=plant)})
    tested = typed("audit", "--self-test")

    assert tested.code == 1
    assert "the self-test failed: missed" in tested.err
