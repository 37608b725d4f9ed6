"""A trusted curator's true tallies and n are disclosed by no endpoint, to nobody.

Marked tallies go in as devices send them; then every endpoint is called with every key, every
operator command is run, and all output, logs and the journal are searched. The noise
stands still here, so that no figure is a mark by chance.
"""

from __future__ import annotations

import io
import json
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import click
import pytest

from veilcount_aggregator.operate.cli.main import EXIT_OK, run, veilcount
from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_aggregator.releases import curator
from veilcount_aggregator.releases.budget_ledger import load_releases
from veilcount_aggregator.web.api import rows
from veilcount_aggregator.web.api.routes import ENDPOINTS, Endpoint
from veilcount_analysis.releases import draw_release
from veilcount_serving.structured_logging import configure_logging
from veilcount_shared.report import Report
from veilcount_shared.verdict import Verdict

from ..aggregator.web.api import deployment_fixtures as fixtures
from ..aggregator.web.api.deployment_fixtures import Deployment, Response, deployment
from ..client.device_fixtures import definitions_text

SECRET = definitions_text(
    "acme-editor",
    age={
        "range": [0, 2], "linkage": "collection", "model": "central", "budget": 1,
        "adjacency": "add-remove",
    },
)  # fmt: skip
TRUTH = (2203, 1621, 1237)  # of age, on one day: 5061 answers
TOGETHER = 4  # reports a batch
AGAIN = 1327  # of them are sent twice
PUBLIC = 1693  # answers to `once`, of whom everybody gives one: under substitution all have as many
OVER = datetime(2027, 3, 1, tzinfo=UTC)
MOVED = 100_003  # what the noise is

COLLECTIONS = ("age", "visits", "once", "theme", "opened")
REQUESTED = (
    "",
    "?from=2026-12-03&to=2026-12-03",
    "?from=2026-12-01&to=2026-12-30&by=day",
    "?view=raw&level=0.95&top=3&by=all",
    "?values=0,1,2&segment=&view=consistent",
    "?a=age&b=visits&left=age&right=visits&with=theme",
    "?devices=1000&epsilon=1&error=0.01&values=3&model=central&n=1000",
)
ACCEPTED = ("application/json", "text/csv", "application/vnd.apache.arrow.stream", "text/html")
QUERIES = ("histogram", "count", "age >= 1", {"count": [2]}, "sum", "mean")


def marks(*numbers: int) -> re.Pattern[bytes]:
    """Return what finds these numbers: in digits, with separators, or as 8 bytes of a table."""
    digits = "|".join(f"{each}|{each:,}|{each:_}" for each in numbers)
    packed = b"|".join(
        re.escape(struct.pack(order, each)) for each in numbers for order in ("<q", ">q")
    )
    return re.compile(rb"(?<![\w.])(?:" + digits.encode() + rb")(?!\w)|" + packed, re.DOTALL)


#: of a request: random, and a part of one may read as a number
REQUEST_ID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def shows(pattern: re.Pattern[bytes], printed: bytes) -> bool:
    """Whether a mark is in what came out, beyond the ids of requests."""
    return pattern.search(REQUEST_ID.sub(b"", printed)) is not None


@dataclass
class Population:
    """A deployment with the reports of a population, and all its output."""

    deployed: Deployment
    keys: dict[str, str]
    spare: str  # the id of a key that may be taken back
    folder: Path
    log: io.StringIO
    batches: int = 0
    out: dict[str, bytes] = field(default_factory=dict)

    def found(self, pattern: re.Pattern[bytes]) -> list[str]:
        """Return where a mark came out. Much is said again and again, and is searched once."""
        marked = {printed for printed in set(self.out.values()) if shows(pattern, printed)}
        return [where for where, printed in self.out.items() if printed in marked]

    def send(self, reports: Sequence[Report], together: int = TOGETHER) -> list[Verdict]:
        """Post reports, some to a batch."""
        verdicts: list[Verdict] = []
        for first in range(0, len(reports), together):
            verdicts += self.deployed.verdicts(*reports[first : first + together])
            self.batches += 1
        return verdicts


@pytest.fixture(scope="module")
def population(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Population]:
    """Marked answers of a day that is long over."""
    folder, log = tmp_path_factory.mktemp("population"), io.StringIO()
    configure_logging(log)
    with (
        pytest.MonkeyPatch.context() as patch,
        deployment(folder, fixtures.FILE, SECRET, fixtures.CENTRAL, fixtures.ONCE) as deployed,
    ):
        patch.setattr(curator, "draw_release", partial(draw_release, noise=_still))
        keys = {str(role): deployed.key(role) for role in (Role.ANALYST, Role.ADMIN)}
        keys |= {"nobody": "", "wrong": "veilcount_admin_x"}
        spare, _ = create_key(deployed.aggregator.store, Role.ANALYST, "spare", deployed.clocks.now)
        made = Population(deployed, keys, spare.id, folder, log)
        _answer(made)
        made.keys["device"] = deployed.key(Role.DEVICE)  # from now on, devices need one
        deployed.clocks.now = OVER
        deployed.clocks.passed += 10
        yield made


def _still(true: Sequence[int], scale: float) -> list[int]:
    return [each + MOVED for each in true]


def _answer(population: Population) -> None:
    deployed = population.deployed
    first, collection = deployed.report("age"), deployed.series("age").collection
    names = (number.to_bytes(16, "big") for number in count(1 << 100, 1 << 50))
    ages = [
        replace(first, pseudonym=next(names), message=collection.pack(age))
        for age, answers in enumerate(TRUTH)
        for _ in range(answers)
    ]
    once = deployed.report("once")
    assert set(population.send(ages)) == {Verdict.COUNTED}
    assert set(population.send(ages[:AGAIN], 1000)) == {Verdict.DUPLICATE}
    everybody = [replace(once, pseudonym=next(names)) for _ in range(PUBLIC)]
    assert set(population.send(everybody, 1000)) == {Verdict.COUNTED}
    for name in ("theme", "opened", "visits"):
        deployed.verdicts(deployed.report(name))


def request_all(population: Population) -> None:
    """Call every endpoint, as everyone, in many ways; destructive ones last."""
    order = {"GET": 0, "POST": 1, "DELETE": 2}
    for endpoint in sorted(ENDPOINTS, key=lambda each: (order[each.method], "close" in each.path)):
        for path, body in _ways(population, endpoint):
            for who, accept in _callers(population, endpoint, path):
                environ = {"HTTP_ACCEPT": accept}
                reply = population.deployed.ask(
                    endpoint.method, path, body, key=population.keys[who], environ=environ
                )
                where = f"{endpoint.method} {path} {body!r} as {who}, {accept}"
                population.out[where] = str(reply.headers).encode() + reply.body


def _callers(population: Population, endpoint: Endpoint, path: str) -> Iterator[tuple[str, str]]:
    """Yield who calls, and for which type.

    Who is let in calls in all ways; analysts for every type, where a marked collection is shown.
    """
    shows = "/age" in path or "a=age" in path or "{name}" not in endpoint.path
    types = ACCEPTED if endpoint.method == "GET" and shows else ACCEPTED[:1]
    for who in population.keys:
        if who == Role.ANALYST:
            yield from ((who, accept) for accept in types)
        elif who == Role.ADMIN or "?" not in path:
            yield from ((who, accept) for accept in {types[0], types[-1]})


def _ways(population: Population, endpoint: Endpoint) -> Iterator[tuple[str, bytes]]:
    """Yield the paths of an endpoint with queries, and the bodies that it accepts."""
    slow = endpoint.path.endswith("/contrast")  # it searches many mechanisms, for each n anew
    names, queries = ("age", "once") if slow else COLLECTIONS, REQUESTED[:-1] if slow else REQUESTED
    paths = {endpoint.path.replace("{name}", name) for name in names}
    series = population.deployed.series("age")
    for path in sorted(paths):
        filled = path.replace("{identity}", population.spare)
        assert "{" not in filled, f"{endpoint.path}: say what stands there"
        if endpoint.method == "GET":
            yield from ((filled + query, b"") for query in queries)
        else:
            yield from ((filled, body) for body in _bodies(endpoint, series.fingerprint))


def _bodies(endpoint: Endpoint, fingerprint: str) -> Iterator[bytes]:
    yield b""
    yield b"{}"
    if endpoint.path == rows.PATH:
        yield _json(fingerprint=fingerprint, pseudonym="A" * 22)
    if endpoint.path.endswith("/releases"):
        for query in QUERIES:
            for dry in (True, False):
                yield _json(query=query, epsilon="0.01", dry_run=dry)
        yield _json(query="count", epsilon="0.01", **{"from": "2026-12-03", "to": "2026-12-03"})
        yield _json(query="count", epsilon="1")
    if endpoint.path == "/v1/collections":
        yield _json(text=SECRET)


def _json(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


#: kinds of records that are made of random bytes, where any digits may stand
RANDOM = {"secret", "session", "link"}


def test_no_endpoint_and_no_record_discloses_a_true_tally_or_n(
    population: Population, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To analyst, admin, device, anyone; as JSON, table or page; in lists, metrics, errors.

    Nor do logs, journal and records, nor a fault between the counts and the noise.
    """
    first = ask_release(population, "histogram", "0.01").json
    request_all(population)
    true = marks(*TRUTH, sum(TRUTH), AGAIN, sum(TRUTH) + AGAIN, population.batches)
    released = [where for where, printed in population.out.items() if b'"charged":true' in printed]

    # The noise stands still: so true tallies were there to leak.
    assert [each["figure"] for each in first["figures"]] == [each + MOVED for each in TRUTH]
    assert population.found(true) == []
    assert population.found(marks(PUBLIC))  # what is public is found: the search sees
    assert len(released) >= len(QUERIES)
    assert {where.split()[0] for where in population.out} == {"GET", "POST", "DELETE"}

    failed = fail_between_counts_and_noise(population, monkeypatch)
    sinks = sinks_of(population) | {"response": failed.body}

    assert failed.problem == "failed"
    assert b"DrawFailed" in sinks["log"]
    stored = load_releases(population.deployed.aggregator.store)
    assert len(sinks["journal"].splitlines()) == len(stored) >= len(QUERIES)
    true = marks(*TRUTH, sum(TRUTH), AGAIN, population.batches)
    assert [name for name, held in sinks.items() if shows(true, held)] == []


def ask_release(population: Population, query: str, epsilon: str) -> Response:
    path, key = "/v1/collections/age/releases", population.keys["analyst"]
    return population.deployed.ask("POST", path, _json(query=query, epsilon=epsilon), key=key)


def fail_between_counts_and_noise(
    population: Population, monkeypatch: pytest.MonkeyPatch
) -> Response:
    """Return what a release is answered with whose noise cannot be drawn."""

    def fail(_: object, counters: object) -> None:
        raise ValueError(f"no noise for {counters}")

    monkeypatch.setattr(curator, "draw_release", fail)
    return ask_release(population, "sum", "0.02")


def sinks_of(population: Population) -> dict[str, bytes]:
    """Return all that is written: records by kind, the journal, the log."""
    store = population.deployed.aggregator.store
    records = {
        kind: b"".join(store.records(kind).values())
        for kind in store.generations()
        if kind not in RANDOM
    }
    journal = (population.folder / "store.db.releases.jsonl").read_bytes()
    return records | {"journal": journal, "log": population.log.getvalue().encode()}


# -- running every command -------------------------------------------------------------------------

SERVING = {"serve", "demo"}  # they serve, and print no estimate


def commands(group: click.Group, *words: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command that is given a store, with its words."""
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word) if word not in SERVING else None
        if isinstance(command, click.Group):
            yield from commands(command, *words, word)
        elif command is not None and any("--store" in each.opts for each in command.params):
            yield (*words, word), command


def typed(words: Sequence[str], command: click.Command, store: str, name: str) -> list[str]:
    """Return a command as it is typed, of a collection wherever it takes a word."""
    flags = {flag for each in command.params for flag in each.opts}
    arguments = [name for each in command.params if isinstance(each, click.Argument)]
    return [*words, *arguments, "--store", store, *(["--json"] if "--json" in flags else [])]


def test_no_command_discloses_what_no_endpoint_discloses(
    population: Population, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator's either, who has the store itself: a terminal is read over a shoulder."""
    monkeypatch.chdir(population.folder)  # a backup is a file
    population.deployed.aggregator.flush()
    store = population.deployed.aggregator.settings.store
    population.out.clear()
    ran = []
    for words, command in commands(veilcount):
        for name in COLLECTIONS:
            line = typed(words, command, store, name)
            code = run(line)
            printed = capsys.readouterr()
            shown = f"{printed.out}{printed.err}".replace(str(population.folder), "")  # its number
            population.out[" ".join(line)] = shown.encode()
            ran += [words] if code == EXIT_OK else []
    every = marks(*TRUTH, sum(TRUTH), AGAIN, sum(TRUTH) + AGAIN, population.batches)

    assert population.found(every) == []
    assert {("keys", "list"), ("collections", "list")} <= set(ran)


def test_the_search_finds_what_it_looks_for() -> None:
    """In digits and in bytes; and no other number, nor a part of one."""
    sought = marks(7919)

    found = (b'{"n":7919}', b"n 7919.0", b"7,919 answers", struct.pack("<q", 7919))
    assert all(map(sought.search, found))
    assert not any(map(sought.search, (b"17919", b"79190", b"0.7919", b"a7919b")))
    request_id = b"ffa19561-7919-4e5b-9e7f-7dc428f3213e"
    assert sought.search(request_id)
    assert not shows(sought, request_id)
    assert shows(sought, b"7919, " + request_id)
