"""No GET writes: neither an endpoint nor a page begins a transaction that writes, on any engine.

What a request leaves behind (its counters, the day of a key's use) waits for the tick. Excepted are
the probe of health, which asks whether writes last, and searches for strings that nobody tested
before, which are counted before they are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from veilcount_aggregator.queries import Snapshot
from veilcount_aggregator.records import api_keys
from veilcount_aggregator.records.api_keys import Role, create_key, load_api_keys, record_key_use
from veilcount_aggregator.records.sessions import begin_session
from veilcount_aggregator.service import Aggregator
from veilcount_aggregator.store import ServiceCounter, Store
from veilcount_aggregator.store.sqlite.database import SqliteDatabase

from ..aggregator.store.engines import ENGINES
from ..aggregator.web.api.deployment_fixtures import CENTRAL, FILE, Deployment, deployment
from ..client.device_fixtures import definitions_text
from .access_table import DECIDED, AccessRule, Kind

STRINGS = definitions_text(
    "acme-editor",
    word={"values": "open", "epsilon": 4, "unit": "month", "answers": 1, "until": "2027-02-01"},
)
WRITES = (
    *("commit", "close_row", "change_records", "change_record", "mark_dropped", "import_pieces"),
    *("finalize_dropped", "delete_rows", "restore_dropped", "replicate", "set_read_only"),
    "accept_losses",
)
NAMES = ("theme", "visits", "word")
PLACES = {"<form>": ("csv", "json"), "<name>": NAMES, "<digest>": ("0000000000000000",)}
COUNTER = ServiceCounter("verdict", "", -1, "malformed")
READS = [rule for rule in DECIDED if rule.method == "GET"]


def addresses(rule: AccessRule) -> list[str]:
    """Return the addresses of a rule: of each kind of collection, in each form."""
    paths = [rule.path]
    for placeholder, values in PLACES.items():
        paths = [path.replace(placeholder, value) for path in paths for value in values]
    return sorted(set(paths))


@dataclass
class Writes:
    """The names of writing methods that are called, and of transactions that are begun."""

    names: list[str] = field(default_factory=list)

    def watch(self, store: Store, patches: pytest.MonkeyPatch) -> None:
        for name in WRITES:
            patches.setattr(type(store), name, self._watched(name, getattr(type(store), name)))
        begin = SqliteDatabase.writing

        def writing(file: SqliteDatabase, *, probe: bool = False) -> object:
            self.names += [] if probe else ["begin immediate"]
            return begin(file, probe=probe)

        patches.setattr(SqliteDatabase, "writing", writing)

    def _watched(self, name: str, method: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            self.names.append(name)
            return method(*arguments, **named)

        return call


@pytest.fixture(scope="module", params=["sqlite", "redis"])
def deployed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("reads")
    with (
        ENGINES[request.param](folder) as empty,
        deployment(folder, FILE, CENTRAL, STRINGS, url=empty()) as made,
    ):
        made.verdicts(*(made.report(name) for name in NAMES))
        made.aggregator.flush()
        yield made


@pytest.fixture(autouse=True)
def _a_request_waits_to_be_written(deployed: Deployment) -> Iterator[None]:
    deployed.aggregator.service_counters.count(COUNTER)
    yield
    deployed.aggregator.flush()


def writes_of(deployed: Deployment, rule: AccessRule) -> tuple[list[str], set[int]]:
    """Read all addresses of a rule with a key that was never used; return writes and statuses."""
    store, role, now = deployed.aggregator.store, rule.role or Role.ADMIN, deployed.clocks.now
    key, secret = create_key(store, role, "", now)
    cookie = {"HTTP_COOKIE": f"veilcount={begin_session(store, role, key.id, now)}"}
    deployed.aggregator.catalog_cache.refresh()
    named = {"environ": cookie} if rule.kind is Kind.PAGE else {"key": secret}
    writes = Writes()
    with pytest.MonkeyPatch.context() as patches:
        writes.watch(store, patches)
        replies = [deployed.ask("GET", path, **named) for path in addresses(rule)]
    return writes.names, {reply.status for reply in replies}


@pytest.mark.parametrize("rule", READS, ids=str)
def test_a_read_writes_nothing(deployed: Deployment, rule: AccessRule) -> None:
    """With counters in memory, and a key that was not used on this day."""
    writes, statuses = writes_of(deployed, rule)

    assert writes == []
    assert not statuses & {401, 403}
    assert max(statuses) < 500


ESTIMATE = next(rule for rule in READS if rule.path.endswith("/estimate"))


def unused_keys(store: Store) -> int:
    return sum(not key.used for key in load_api_keys(store).keys.values())


def test_counters_and_key_uses_of_reads_are_written_by_the_tick(deployed: Deployment) -> None:
    store, aggregator = deployed.aggregator.store, deployed.aggregator
    writes_of(deployed, ESTIMATE)
    unused, counts = unused_keys(store), store.service_counts()[COUNTER]
    aggregator.flush()

    assert unused_keys(store) == unused - 1
    assert store.service_counts()[COUNTER] == counts + 1


def flush_first(aggregator: Aggregator) -> Snapshot:
    aggregator.flush()
    return Snapshot(aggregator.known().catalog, aggregator.store, aggregator.today())


def test_a_page_that_flushes_first_is_found(
    deployed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As every page of estimates did: planted."""
    monkeypatch.setattr(Aggregator, "snapshot", flush_first)
    writes, _ = writes_of(deployed, ESTIMATE)

    assert "commit" in writes


def test_a_use_of_a_key_that_is_written_at_once_is_found(
    deployed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As every first request of a day did: planted."""
    store, now = deployed.aggregator.store, deployed.clocks.now
    monkeypatch.setattr(api_keys.KeyUses, "add", lambda _, key, __: record_key_use(store, key, now))
    writes, _ = writes_of(deployed, ESTIMATE)

    assert "change_records" in writes
