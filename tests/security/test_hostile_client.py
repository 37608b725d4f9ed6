"""A client that means ill, against the server: it counts for itself alone, and fills nothing."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from veilcount_shared.report import MAX_REPORTS
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import encode_base64

from ..aggregator.store.engines import ENGINES, Empty
from ..aggregator.web.api.deployment_fixtures import FILE, Deployment, deployment

LIMIT = 1_000
FLOOD = 5_000
MOST_BYTES = 200  # for a pseudonym
REFUSED = (Verdict.OVER_BUDGET, Verdict.MALFORMED)
SLACK = 128 << 10  # a log that is written anew, a page that is half full


@pytest.fixture(scope="module", params=["sqlite", "redis"])
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Empty]:
    with ENGINES[request.param](tmp_path_factory.mktemp("engine")) as empty:
        yield empty


@pytest.fixture
def small(engine: Empty, tmp_path: Path) -> Iterator[Deployment]:
    with deployment(tmp_path, FILE, url=engine(), max_new_pseudonyms=LIMIT) as made:
        yield made


def flood(made: Deployment, name: str, reports: int) -> list[Verdict]:
    one = made.report(name)
    verdicts: list[Verdict] = []
    for start in range(0, reports, MAX_REPORTS):
        size = min(MAX_REPORTS, reports - start)
        verdicts += made.verdicts(
            *(replace(one, pseudonym=secrets.token_bytes(16)) for _ in range(size))
        )
    return verdicts


def size_of(made: Deployment) -> int:
    url = made.aggregator.settings.store
    if url.startswith("redis"):
        with redis.Redis.from_url(url) as connection:
            return int(connection.info("memory")["used_memory_dataset"])
    file = Path(url.removeprefix("sqlite:///").partition("?")[0])
    return sum(each.stat().st_size for each in file.parent.glob(f"{file.name}*"))


def test_a_flood_of_pseudonyms_stops_at_the_limit_of_a_period(small: Deployment) -> None:
    """A row for each pseudonym that there is room for, and no more, as the engine says.

    Whoever was there before is counted still; other collections, later periods are not full.
    """
    honest = small.report("opened")
    small.verdicts(honest)
    empty = size_of(small)
    verdicts = flood(small, "opened", FLOOD)
    full = size_of(small)
    flood(small, "opened", FLOOD)

    assert full - empty < LIMIT * MOST_BYTES + SLACK
    assert size_of(small) - full < SLACK
    assert verdicts.count(Verdict.COUNTED) == LIMIT - 1
    assert verdicts.count(Verdict.FULL) == FLOOD - LIMIT + 1
    assert small.counted("opened") == LIMIT
    assert small.verdicts(replace(honest, slot=1)) == [Verdict.COUNTED]
    assert small.verdicts(small.report("theme")) == [Verdict.COUNTED]
    small.clocks.now = small.clocks.now.replace(day=4)
    assert small.verdicts(small.report("opened")) == [Verdict.COUNTED]


def test_no_guess_hits_a_slot_of_somebody_else_and_no_repetition_counts(small: Deployment) -> None:
    """Of sixteen random bytes: some hundred guesses, and each neighbour of the right ones.

    A body is repeated as it is, in another order, with another message, many times.
    """
    honest = small.report("opened")
    right = int.from_bytes(honest.pseudonym)
    near = [(right ^ 1 << 8 * place).to_bytes(16) for place in range(4, 16)]  # the first 12 count
    guesses = [replace(honest, pseudonym=each) for each in near]
    guessed = small.verdicts(*guesses) + flood(small, "opened", LIMIT // 2)
    message = small.series("opened").collection.pack(1)
    changed = [replace(each, message=message) for each in reversed(guesses)]
    repeated = small.verdicts(*guesses, *guesses) + small.verdicts(*changed)

    assert set(guessed) == {Verdict.COUNTED}
    assert set(repeated) == {Verdict.DUPLICATE}
    assert small.verdicts(honest) == [Verdict.COUNTED]
    assert small.counted("opened") == len(guessed) + 1


def test_one_pseudonym_for_everything_counts_once_a_slot(small: Deployment) -> None:
    """All collections, periods, slots and segments in one body: what is due, and no more."""
    pseudonym = secrets.token_bytes(16)
    reports = [
        small.report(name, pseudonym=pseudonym, slot=slot, segment=segment)
        for name, slots, segments in (("theme", 12, 1), ("opened", 2, 2), ("alone", 1, 1))
        for slot in range(slots + 3)
        for segment in range(segments)
        for _ in range(2)
    ]
    verdicts = small.verdicts(*reports)
    most = {"theme": 1, "opened": 2, "alone": 1}  # a slot of another month is of another month

    assert {name: small.counted(name) for name in most} == most
    assert verdicts.count(Verdict.COUNTED) == sum(most.values())
    assert set(verdicts) <= {Verdict.COUNTED, Verdict.DUPLICATE, *REFUSED}


def test_nobody_closes_the_row_of_somebody_else(small: Deployment) -> None:
    """Who does not know its pseudonym closes no row, nor does who names another collection."""
    mine = small.report("opened")
    small.verdicts(mine)
    stranger = secrets.token_bytes(16)
    other = small.series("theme").fingerprint
    guesses = [(mine.fingerprint, stranger), (other, mine.pseudonym), ("0" * 64, mine.pseudonym)]
    statuses = {close(small, fingerprint, pseudonym) for fingerprint, pseudonym in guesses}

    assert statuses == {204}  # as if it were done
    assert small.verdicts(replace(mine, slot=1)) == [Verdict.COUNTED]
    assert close(small, mine.fingerprint, mine.pseudonym) == 204


def close(made: Deployment, fingerprint: str, pseudonym: bytes) -> int:
    name = {"fingerprint": fingerprint, "pseudonym": encode_base64(pseudonym)}
    return made.ask("POST", "/v1/rows/close", json.dumps(name).encode()).status
