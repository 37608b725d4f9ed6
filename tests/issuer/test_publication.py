"""Published numbers: a line a period, final when it begins, whatever is killed or restored."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from veilcount_aggregator.errors import StoreUnfit
from veilcount_aggregator.store import Record, Store, open_store
from veilcount_aggregator.store.backup import backup, restore
from veilcount_issuer import publication
from veilcount_issuer.issued_numbers import first_difference, verify_numbers
from veilcount_issuer.issuer import Issuer, open_publication
from veilcount_issuer.issuer_checks import CHECKS, IssuerSubject
from veilcount_issuer.key_vault import FolderVault
from veilcount_issuer.ledger import KIND, IssuanceLedger, SlotRequest
from veilcount_issuer.publication import Publication
from veilcount_issuer.worker import IssuerSettings
from veilcount_serving.errors import SettingsError
from veilcount_serving.findings import Severity
from veilcount_shared import load_collections

from ..aggregator.store.engines import Empty
from .issuer_fixtures import BEGIN, NOON, Issuance, document, problem

WEEK = timedelta(days=7)
PERIODS = 4


def published(issuance: Issuance) -> list[int]:
    """Return the numbers that everybody is given, verified."""
    reply = issuance.web.get(f"/v1/issued/{issuance.theme.fingerprint}")
    assert reply.status_code == 200
    return [number.accounts for number in verify_numbers(reply.data, public_key(issuance))]


def public_key(issuance: Issuance) -> Ed25519PublicKey:
    return issuance.issuer._publication.key.public_key()


@pytest.fixture
def campaign(issuance: Issuance) -> Issuance:
    """An issuer that ran before the campaign, and issued to one, two, none and one accounts."""
    issuance.issuer.publish()
    for person, periods in enumerate([(0, 1), (1, 3)]):
        issuance.tokens(f"account {person}", issuance.slots(periods, person))
    return issuance


def test_a_number_is_published_when_its_period_begins(campaign: Issuance) -> None:
    """And it is the same bytes for everybody from then on, with all that follow."""
    path = f"/v1/issued/{campaign.theme.fingerprint}"
    campaign.now = BEGIN - timedelta(seconds=1)
    campaign.issuer.publish()
    assert published(campaign) == []
    files = []
    for period, expected in enumerate([[1], [1, 2], [1, 2, 0], [1, 2, 0, 1]]):
        campaign.now = BEGIN + period * WEEK
        campaign.issuer.publish()
        assert published(campaign) == expected
        replies = [campaign.web.get(path), campaign.web.get(path, headers=campaign.bearer("a"))]
        assert len({reply.data for reply in replies}) == 1
        assert replies[0].headers["Cache-Control"].startswith("public")
        files.append(replies[0].data)

    assert all(later.startswith(file) for file, later in pairwise(files))
    assert problem(campaign.web.get("/v1/issued/" + "0" * 64)) == "not-found"


def test_an_issuer_that_was_down_publishes_what_it_missed(campaign: Issuance) -> None:
    """Nothing can have been signed meanwhile; the periods have their own first days."""
    campaign.now = BEGIN + 2 * WEEK
    campaign.issuer.publish()
    numbers = verify_numbers(
        campaign.issuer.issued_numbers(campaign.theme.fingerprint), public_key(campaign)
    )

    assert [each.accounts for each in numbers] == [1, 2, 0]
    assert [each.begins for each in numbers] == [(BEGIN + n * WEEK).date() for n in range(3)]


def test_the_earlier_clock_decides_when_a_number_is_final(
    campaign: Issuance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host whose clock is ahead signs nothing more, and publishes nothing yet."""
    (request,) = campaign.requests(campaign.slots([0], 2))
    monkeypatch.setattr(campaign.store, "server_times", lambda: [NOON])
    campaign.now = BEGIN
    campaign.issuer.publish()

    assert published(campaign) == []
    assert problem(campaign.ask("account 2", [request])) == "period-begun"


def test_a_slow_clock_signs_nothing_for_a_published_period(campaign: Issuance) -> None:
    """Another host has published it: refused before anything is recorded."""
    campaign.now = BEGIN
    campaign.issuer.publish()
    campaign.now = NOON
    requests = campaign.requests(campaign.slots([0, 2], 7))
    reply = campaign.ask("late", requests)

    assert (problem(reply), document(reply)["over"]) == ("period-begun", [0])
    accounts = campaign.issuer._ledger.accounts(campaign.theme.fingerprint)
    assert accounts == {0: 1, 1: 2, 3: 1}
    assert campaign.ask("late", requests[1:]).status_code == 200


@pytest.mark.parametrize("again", [True, False], ids=["as it is", "planted: looked at once"])
def test_what_was_not_counted_is_not_signed(
    campaign: Issuance, monkeypatch: pytest.MonkeyPatch, *, again: bool
) -> None:
    """Period 0 is published after a request was checked and before it is recorded.

    An issuer that does not look again signs for an account that was not counted.
    """
    record, requests = IssuanceLedger.record, campaign.requests(campaign.slots([0], 7))

    def late(*arguments: object) -> None:
        campaign.now = BEGIN
        campaign.issuer.publish()
        record(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(IssuanceLedger, "record", late)
    if not again:
        monkeypatch.setattr(Issuer, "_refuse_begun", lambda *_: None)
    assert campaign.ask("in flight", requests).status_code == (409 if again else 200)
    assert published(campaign) == [1]


KILLED = """
import os, signal, sys
from pathlib import Path
from veilcount_issuer.issuer import open_publication
from veilcount_issuer.issuer_checks import CHECKS, IssuerSubject
from veilcount_issuer.key_vault import FolderVault
from veilcount_aggregator.store import open_store
from veilcount_shared import load_collections

url, definitions, steps = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
store, vault = open_store(url), FolderVault(definitions.parent / "keys")
change = store.change_record

def killed(*arguments):
    global steps
    if steps == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    steps -= 1
    return change(*arguments)

store.change_record = killed
publication = open_publication(store, vault)
publication.publish(load_collections(definitions)["theme"], 4)
"""


@pytest.fixture
def url(empty: Empty, definitions: Path) -> str:
    """A store with three accounts of period 0, two of period 1; nothing is published."""
    name = empty()
    with closing(open_store(name, make=True)) as store:
        ledger = opened(store, definitions)
        theme = load_collections(definitions)["theme"]
        ledger.publish(theme, 0)
        for account, periods in enumerate([(0, 1), (0, 1), (0,)]):
            requests = [SlotRequest(period, b"x") for period in periods]
            ledger.ledger.record(str(account), theme, requests, 0)
    return name


def opened(store: Store, definitions: Path) -> Publication:
    return open_publication(store, FolderVault(definitions.parent / "keys"))


@pytest.mark.parametrize("steps", [0, 1, 4, 5, 7])
def test_another_process_goes_on_from_a_killed_one(url: str, definitions: Path, steps: int) -> None:
    """Four marks and four lines are written, each durable; kill -9 before the next."""
    command = [sys.executable, "-c", KILLED, url, str(definitions), str(steps)]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    theme = load_collections(definitions)["theme"]
    with closing(open_store(url)) as store:
        file = opened(store, definitions)
        before = file.file(theme.fingerprint)
        file.publish(theme, PERIODS)
        after = file.file(theme.fingerprint)
        numbers = verify_numbers(after, file.key.public_key())

    assert before.count(b"\n") == max(steps - PERIODS, 0)
    assert after.startswith(before)
    assert [number.accounts for number in numbers] == [3, 2, 0, 0]


def overtaken(url: str, definitions: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[bytes]:
    """Yield the file after each of two workers has published, the first being the slower one.

    Between their counts a request that will be refused was recorded: their numbers differ.
    """
    theme = load_collections(definitions)["theme"]
    with closing(open_store(url)) as own, closing(open_store(url)) as others:
        slower, faster = opened(own, definitions), opened(others, definitions)
        accounts, files = slower.ledger.accounts, list[bytes]()

        def count(fingerprint: str) -> object:
            numbers = accounts(fingerprint)
            monkeypatch.undo()
            faster.ledger.record("in flight", theme, [SlotRequest(0, b"x")], 0)
            faster.publish(theme, PERIODS)
            files.append(faster.file(fingerprint))
            return numbers

        monkeypatch.setattr(IssuanceLedger, "accounts", lambda _, name: count(name))
        slower.publish(theme, PERIODS)
        yield from files
        yield slower.file(theme.fingerprint)


@pytest.mark.parametrize("over", [False, True], ids=["as it is", "planted: written over"])
def test_of_two_workers_that_publish_one_line_a_period_stands(
    url: str, definitions: Path, monkeypatch: pytest.MonkeyPatch, *, over: bool
) -> None:
    """A worker that writes whatever is there changes the published file."""
    with writing_over() if over else nullcontext():
        first, second = overtaken(url, definitions, monkeypatch)

    assert (first == second) is not over
    assert first.count(b"\n") == PERIODS


@contextmanager
def writing_over() -> Iterator[None]:
    """Plant a worker that knows no later line, and replaces what is stored."""

    def append(own: Publication, collection: object, period: int, accounts: int) -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(publication, "read_lines", lambda *those: lines(*those)[:period])
            patched.setattr(Publication, "_change", write_over)
            original(own, collection, period, accounts)  # type: ignore[arg-type]

    original, lines = Publication._append, publication.read_lines
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Publication, "_append", append)
        yield


def write_over(own: Publication, fingerprint: str, period: int, line: bytes, _: object) -> bool:
    kind, name = publication.KIND + fingerprint, publication._name(period)
    before = own.store.records_at(kind, [name]).get(name)
    return own.store.change_record(Record(kind, name, line), before)


@pytest.fixture
def restored(campaign: Issuance, definitions: Path, tmp_path: Path) -> Iterator[Issuance]:
    """A store as it was before account 2 came and periods 0 and 1 were published."""
    source = f"sqlite:///{tmp_path}/older.db"
    with closing(open_store(source, make=True)) as older:
        older.import_pieces(list(campaign.store.export_pieces()))
    backup(source, tmp_path / "backup")
    campaign.tokens("account 2", campaign.slots([0, 1], 2))
    campaign.now = BEGIN + WEEK
    campaign.issuer.publish()
    assert published(campaign) == [2, 3]
    (tmp_path / "published").write_bytes(campaign.issuer.issued_numbers(campaign.theme.fingerprint))
    url = f"sqlite:///{tmp_path}/restored.db"
    restore(tmp_path / "backup", url)
    with closing(open_store(url)) as store:
        yield Issuance(definitions, store, now=campaign.now)


def names(issuance: Issuance) -> dict[str, str]:
    return {each.fingerprint: name for name, each in issuance.collections.items()}


def test_a_restored_store_waits_for_its_lines(restored: Issuance, tmp_path: Path) -> None:
    """The file goes on from what was published; that the ledger is older is reported."""
    with pytest.raises(StoreUnfit, match="restored, and may lack published lines: import"):
        restored.issuer.publish()
    assert published(restored) == []
    assert findings(restored) == [
        f"{name}: the store was restored, and may lack published lines"
        for name in ("theme", "crash")
    ]
    metrics = restored.web.get("/metrics").text
    assert f'unpublished_periods{{fingerprint="{restored.theme.fingerprint}"}} 2\n' in metrics
    own = restored.issuer._publication
    own.import_lines(tmp_path / "published", names(restored))
    own.resume(restored.collections.values())
    restored.now += WEEK
    restored.issuer.publish()

    assert published(restored) == [2, 3, 0]
    assert findings(restored) == list(restored.issuer.contradictions())
    assert [text.partition(": ")[2] for text in findings(restored)] == [
        "period 0 was published with 2 accounts, and the ledger has 1",
        "period 1 was published with 3 accounts, and the ledger has 2",
    ]


def findings(issuance: Issuance) -> list[str]:
    """Return what `doctor` finds of the numbers that is wrong."""
    files = (issuance.definitions,)
    settings = IssuerSettings("", files, issuance.definitions.parent / "keys")
    results = CHECKS["numbers"](IssuerSubject(settings, issuance.store, issuance.now))
    return [result.what for result in results if result.state is Severity.WRONG]


def test_doctor_names_periods_without_a_number(campaign: Issuance) -> None:
    assert findings(campaign) == []
    campaign.now = BEGIN + WEEK
    assert findings(campaign) == [
        "theme: 2 periods are not published",
        "crash: 2 periods are not published",
    ]
    campaign.issuer.publish()
    assert findings(campaign) == []


def test_an_issuer_that_publishes_from_an_older_ledger_is_caught(
    restored: Issuance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: the lock is not looked at. A second number is signed, and two copies show it."""
    monkeypatch.setattr(publication, "publication_problem", lambda *_: None)
    restored.issuer.publish()
    second = restored.issuer.issued_numbers(restored.theme.fingerprint)
    first = (tmp_path / "published").read_bytes()
    copies = [verify_numbers(each, public_key(restored)) for each in (first, second)]
    difference = first_difference(*copies)

    assert difference is not None
    assert [number.accounts for number in difference] == [2, 1]
    own = restored.issuer._publication
    with pytest.raises(SettingsError, match="another line for period 0 of theme"):
        own.import_lines(tmp_path / "published", names(restored))
    assert restored.issuer.issued_numbers(restored.theme.fingerprint) == second


def test_a_new_store_publishes_nothing_of_a_begun_campaign(issuance: Issuance) -> None:
    """Its ledger is empty, and what was published from another store stands."""
    issuance.now = BEGIN
    with pytest.raises(StoreUnfit, match="periods had begun before the issuer ran with this"):
        issuance.issuer.publish()

    assert published(issuance) == []


def test_one_collection_without_lines_keeps_no_other_from_publishing(campaign: Issuance) -> None:
    campaign.store.change_record(
        Record(publication.COMPLETE, campaign.collections["crash"].fingerprint, None), b""
    )
    campaign.now = BEGIN
    with pytest.raises(StoreUnfit, match="crash"):
        campaign.issuer.publish()

    assert published(campaign) == [1]


def test_numbers_outlive_the_ledger_and_the_keys(
    campaign: Issuance, definitions: Path, tmp_path: Path
) -> None:
    """The ledger goes once all of its numbers are published, and no sooner."""
    fingerprint = campaign.theme.fingerprint
    vault = FolderVault(tmp_path / "vault", make=True)
    original = FolderVault(definitions.parent / "keys")
    vault.add({name: original.read(name) or b"" for name in original.names()})
    issuer = Issuer.open([definitions], campaign.store, vault, lambda: campaign.now)
    campaign.now = BEGIN + 10 * WEEK
    issuer.retire()
    assert issuer._ledger.accounts(fingerprint)
    issuer.publish()
    issuer.retire()

    assert not issuer._ledger.accounts(fingerprint)
    assert vault.names() == {"ledger", "issued-numbers"}
    assert published(campaign) == [1, 2, 0, 1]
    assert list(issuer.contradictions()) == []


def test_an_erased_account_leaves_only_its_numbers(campaign: Issuance, definitions: Path) -> None:
    """Published or to be published; and doctor finds no contradiction."""
    campaign.issuer.publish()
    ledger, fingerprint = campaign.issuer._ledger, campaign.theme.fingerprint
    before, keys = ledger.accounts(fingerprint), set(campaign.store.record_keys(KIND + fingerprint))
    name = ledger._hash("account", fingerprint, b"account 0")
    results = [ledger.erase("account 0", fingerprint) for _ in range(2)]

    assert name in keys
    assert name not in campaign.store.record_keys(KIND + fingerprint)
    assert results == [True, False]
    assert ledger.accounts(fingerprint) == before
    assert findings(campaign) == []
