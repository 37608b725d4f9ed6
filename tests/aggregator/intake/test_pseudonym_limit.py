"""`full` tells a stranger no exact number of a collection whose n is withheld.

The attack: fill a period with invented pseudonyms until the first `full`; the setting less what was
sent is the number of those who were there before.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from veilcount_aggregator.intake.decode import DecodedBody, DecodedGroup
from veilcount_aggregator.intake.decode.columns import columns_from_reports
from veilcount_aggregator.intake.pipeline import IntakeDays, IntakePipeline
from veilcount_aggregator.intake.pseudonym_limit import (
    PseudonymLimit,
    RequestOrigin,
    limit_secret_reader,
)
from veilcount_aggregator.intake.store_writer import StoreWriter
from veilcount_aggregator.records.service_counters import ServiceCounters
from veilcount_aggregator.store import VERDICTS, Store, open_store
from veilcount_analysis.series.series import Series
from veilcount_shared import parse_collections
from veilcount_shared.report import Report
from veilcount_shared.verdict import Verdict

SETTING = 60
HONEST = 7
PERIODS = 20
TEXT = """
app = "acme"
[visited]
question = "?"
boolean = true
unit = "day"
from = 2026-12-01
until = 2026-12-21
late = 30
"""


def series(*keys: str) -> Series:
    return Series(parse_collections("\n".join((TEXT, *keys)), lambda _: [])["visited"])


WITHHELD = series('model = "central"', "budget = 1", 'adjacency = "add-remove"')
PUBLIC = series('model = "central"', "budget = 1", 'adjacency = "substitute"')
LOCAL = series("epsilon = 1")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path}/store.db", make=True)
    yield opened
    opened.close()


@dataclass(frozen=True)
class Unvaried(PseudonymLimit):
    """The planted fault: one limit for all, which everyone knows."""

    def for_period(self, series: Series, period: int) -> int:
        return self.most


def learnt(store: Store, which: Series, limit: PseudonymLimit) -> list[int]:
    """What the attacker takes for the number of honest pseudonyms, period by period."""
    service_counters = ServiceCounters(lambda: 0.0)
    writer = StoreWriter(store, service_counters, lambda: 0.0)
    intake = IntakePipeline(writer.commit, service_counters, limit)
    packed = which.collection.pack(0)

    def fill(period: int, number: int) -> list[Verdict]:
        reports = [
            Report(which.fingerprint, period, 0, secrets.token_bytes(16), 0, packed)
            for _ in range(number)
        ]
        group = DecodedGroup.from_body(DecodedBody(number, columns_from_reports(reports)))
        until = which.collection.until
        days = IntakeDays(until, until)
        ((codes,),) = intake.process([(None, group)], {which.fingerprint: which}, days)
        assert not isinstance(codes, Exception)
        return [VERDICTS[code] for code in codes.tolist()]

    found = []
    for period in range(PERIODS):
        fill(period, HONEST)
        found.append(SETTING - fill(period, SETTING).index(Verdict.FULL))
    return found


def fixed(most: int = SETTING, key: bytes = b"a key") -> PseudonymLimit:
    return PseudonymLimit(most, lambda: key)


def test_who_fills_a_period_does_not_learn_how_many_were_there(store: Store) -> None:
    """What he takes for n is spread over half the setting, above n, by the period's own draw."""
    limit = fixed()
    found = learnt(store, WITHHELD, limit)
    drawn = [SETTING - limit.for_period(WITHHELD, period) for period in range(PERIODS)]

    assert found == [HONEST + each for each in drawn]
    assert len(set(found)) > PERIODS // 2


@pytest.mark.parametrize(
    ("which", "limit"),
    [(WITHHELD, Unvaried(SETTING, lambda: b"")), (PUBLIC, fixed()), (LOCAL, fixed())],
    ids=["the planted fault", "public n", "local"],
)
def test_the_attack_works_where_the_limit_is_known(
    store: Store, which: Series, limit: PseudonymLimit
) -> None:
    """Against one known limit; and, harmless, where n is public anyway."""
    assert learnt(store, which, limit) == [HONEST] * PERIODS


def test_limits_fill_the_upper_half_and_no_more() -> None:
    """Over 4,000 fixed keys each of the 30 limits is drawn: one would be missing once in e^130."""
    found = {fixed(key=f"{n}".encode()).for_period(WITHHELD, 0) for n in range(4000)}

    assert found == set(range(SETTING // 2 + 1, SETTING + 1))


def test_a_limit_leaves_at_least_half() -> None:
    for most in (1, 2, 3, 10**7):
        limits = [fixed(most).for_period(WITHHELD, period) for period in range(50)]

        assert all(most / 2 <= limit <= most for limit in limits)


def test_all_workers_of_a_store_derive_the_same_limits(store: Store, tmp_path: Path) -> None:
    """Also after a restart: the key is made once, and another store has another."""
    one, two = (PseudonymLimit(10**6, limit_secret_reader(store)) for _ in range(2))
    other_store = open_store(f"sqlite:///{tmp_path}/other.db", make=True)
    other = PseudonymLimit(10**6, limit_secret_reader(other_store))
    found = [
        [each.for_period(WITHHELD, period) for period in range(8)] for each in (one, two, other)
    ]
    other_store.close()

    assert found[0] == found[1] != found[2]


def test_a_collection_with_tokens_has_no_hourly_quota() -> None:
    """Its pseudonyms cannot be invented; a launch would only wait for the next hour."""
    limit, origin = PseudonymLimit(SETTING, bytes, hourly=10), RequestOrigin(hour=5)
    with_tokens = series(
        "epsilon = 1", 'linkage = "token"', f'tokens = "{"0" * 64}"', "answers = 1"
    )

    assert limit.quota(with_tokens, origin) is None
    assert limit.quota(LOCAL, origin) is not None
