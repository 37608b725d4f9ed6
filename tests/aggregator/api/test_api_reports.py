"""`POST /v1/reports`: what is taken, what is refused and how, and whose fault it is."""

from __future__ import annotations

import gzip
import io
import json
import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.aggregator.api.deployment_fixtures import FILE, Deployment, Response, deployment
from veilcount_aggregator.api.reports import reply
from veilcount_aggregator.auth.api_keys import Role, load_api_keys, revoke_key
from veilcount_aggregator.errors import (
    Overloaded,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnfit,
)
from veilcount_client.delivery.transport import Delivered, Later, Rejected
from veilcount_client.testing.doubles import WsgiTransport
from veilcount_shared.report import Batch, Losses
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import (
    BINARY_TYPE,
    JSON_TYPE,
    MAX_BODY,
    encode_binary,
    encode_json,
    encode_verdicts,
)

PATH = "/v1/reports"
#: on these a device drops its batch for good
DROPS = {400, 413, 415, 422}


class Unread(io.BytesIO):
    """A body that must not be read."""

    def read(self, *_: Any) -> bytes:
        raise AssertionError("was read")


class Gone(io.BytesIO):
    """A device that went away in the middle."""

    def read(self, *_: Any) -> bytes:
        raise ConnectionResetError


# -- taken -----------------------------------------------------------------------------------------


def test_each_report_gets_its_verdict(deployed: Deployment) -> None:
    """A bad one leaves the good ones counted."""
    good = deployed.report("theme")
    sent = [
        good,
        good,
        replace(good, fingerprint="0" * 64),
        deployed.report("opened", period=3),
        deployed.report("opened", slot=2),
        deployed.report("opened", segment=2),
        deployed.report("opened", segment=1),
        deployed.report("theme", message=b"\xff"),
        deployed.report("theme", message=b"\1\1"),
    ]

    with pytest.raises(ValueError, match="one width"):
        deployed.verdicts(*sent)

    assert deployed.verdicts(*sent[:-1]) == [
        Verdict.COUNTED,
        Verdict.DUPLICATE,
        Verdict.UNKNOWN_COLLECTION,
        Verdict.EARLY,
        Verdict.OVER_BUDGET,
        Verdict.MALFORMED,
        Verdict.COUNTED,
        Verdict.MALFORMED,
    ]
    assert deployed.verdicts(sent[-1]) == [Verdict.MALFORMED]
    assert (deployed.counted("theme"), deployed.counted("opened")) == (1, 1)


@pytest.mark.parametrize("zipped", [False, True])
def test_json_is_counted_like_packed(deployed: Deployment, zipped: bool) -> None:  # noqa: FBT001 - drawn
    """Zipped or not."""
    raw = encode_json(Batch((deployed.report("theme"), deployed.report("theme"))))
    environ = {"HTTP_CONTENT_ENCODING": "gzip"} if zipped else {}

    answer = deployed.ask("POST", PATH, gzip.compress(raw) if zipped else raw, environ=environ)

    assert answer.json == {"verdicts": ["counted", "counted"]}


def test_an_answer_is_kept_by_nobody(deployed: Deployment) -> None:
    """Neither a cache nor a guesser of types; and it has a length."""
    answer = deployed.send(Batch((deployed.report("theme"),)))

    assert answer.headers == {
        "Content-Type": JSON_TYPE,
        "Content-Length": str(len(answer.body)),
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }


def test_a_reply_is_spelled_as_the_protocol_does() -> None:
    """For every list of verdicts up to three, and a long one."""
    lists: list[Sequence[Verdict]] = [
        each for size in range(4) for each in product(Verdict, repeat=size)
    ]

    for verdicts in [*lists, list(Verdict) * 111]:
        assert reply(verdicts) == encode_verdicts(verdicts)


def test_a_body_without_a_length_is_read_to_its_end(deployed: Deployment) -> None:
    """Where the server tells the end: chunked bodies. Otherwise there is none."""
    raw = encode_binary(Batch((deployed.report("theme"),)))
    chunked = deployed.ask(
        "POST",
        PATH,
        raw,
        kind=BINARY_TYPE,
        environ={"CONTENT_LENGTH": "", "wsgi.input_terminated": True},
    )
    unknown = deployed.ask("POST", PATH, raw, kind=BINARY_TYPE, environ={"CONTENT_LENGTH": ""})

    assert chunked.json == {"verdicts": ["counted"]}
    assert unknown.problem == "wrong-length"


def test_losses_are_counted_without_a_verdict(deployed: Deployment) -> None:
    """One device's, by reason and number of digits."""
    series = deployed.series("theme")
    answer = deployed.send(Batch(losses=Losses(series.fingerprint, aged=2, corrupt=1)))
    deployed.aggregator.flush()
    words = {
        note.word: number
        for note, number in deployed.aggregator.store.service_counts().items()
        if note.what == "loss"
    }

    assert answer.body == b'{"verdicts":[]}'
    assert words == {"aged:2": 1, "corrupt:1": 1}


# -- refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "kind", "result"),
    [
        (b"{}", JSON_TYPE, (400, "unknown-version", "version")),
        (b"VC", BINARY_TYPE, (400, "wrong-length", "head")),
        (b"VC\1\2", BINARY_TYPE, (400, "bad-field", "flags")),
        (b"", JSON_TYPE, (400, "bad-field", "body")),
        (b"x", "text/plain", (415, "unsupported", "Content-Type")),
        (b"x", "", (415, "unsupported", "Content-Type")),
    ],
)
def test_an_invalid_batch_is_refused_as_a_whole(
    deployed: Deployment, body: bytes, kind: str, result: tuple[int, str, str]
) -> None:
    """With a problem document that names the place."""
    answer = deployed.ask("POST", PATH, body, kind=kind)

    assert (answer.status, answer.problem, answer.json["place"]) == result


def test_a_test_batch_is_refused_in_production(deployed: Deployment) -> None:
    """By name, so that a developer sees why."""
    answer = deployed.send(Batch((deployed.report("theme"),), test=True))

    assert (answer.problem, answer.json["place"]) == ("bad-field", "test")
    assert deployed.counted("theme") == 0


def test_a_test_batch_is_counted_in_development(tmp_path: Path) -> None:
    """Like any other."""
    with deployment(tmp_path, FILE, dev=True) as developing:
        answer = developing.send(Batch((developing.report("theme"),), test=True))

        assert answer.json == {"verdicts": ["counted"]}


def test_another_method_gets_the_allowed_ones(deployed: Deployment) -> None:
    """Whatever the path beyond it."""
    answer = deployed.ask("GET", PATH)

    assert (answer.status, answer.headers["Allow"]) == (405, "POST")
    assert deployed.ask("POST", f"{PATH}/").status == 404


@pytest.mark.parametrize("length", [str(MAX_BODY + 1), "9" * 5000])
def test_a_body_that_is_too_long_is_not_read(deployed: Deployment, length: str) -> None:
    """Its announced length is enough."""
    answer = deployed.ask("POST", PATH, environ={"CONTENT_LENGTH": length, "wsgi.input": Unread()})

    assert (answer.status, answer.problem) == (413, "too-large")


def test_a_body_that_was_not_announced_is_read_up_to_the_limit(deployed: Deployment) -> None:
    """And refused beyond it."""
    body = io.BytesIO(bytes(3 * MAX_BODY))
    answer = deployed.ask(
        "POST",
        PATH,
        environ={"CONTENT_LENGTH": "", "wsgi.input": body, "wsgi.input_terminated": True},
    )

    assert answer.status == 413
    assert body.tell() == MAX_BODY + 1


@pytest.mark.parametrize("length", ["x", "-1", "1.5", "\N{FULLWIDTH DIGIT ONE}"])
def test_a_length_that_is_none_is_refused(deployed: Deployment, length: str) -> None:
    """A number, or nothing."""
    answer = deployed.ask("POST", PATH, b"x", environ={"CONTENT_LENGTH": length})

    assert (answer.status, answer.json["place"]) == (400, "Content-Length")


@pytest.mark.parametrize("body", [io.BytesIO(b"VC"), Gone()])
def test_a_body_that_was_cut_on_the_way_is_not_the_devices_fault(
    deployed: Deployment, body: io.BytesIO
) -> None:
    """It is asked to send it again, and will."""
    answer = deployed.ask("POST", PATH, environ={"CONTENT_LENGTH": "50", "wsgi.input": body})

    assert (answer.status, answer.problem) == (408, "incomplete")


# -- keys and rates --------------------------------------------------------------------------------


def test_devices_need_a_key_once_there_is_one(deployed: Deployment) -> None:
    """And for ever after: taking the last one back opens nothing."""
    report = deployed.report("theme")
    assert deployed.send(Batch((deployed.report("theme"),))).status == 200
    key = deployed.key(Role.DEVICE)
    without, wrong, right = (
        deployed.send(Batch((report,)), key=each) for each in ("", "veilcount_device_x", key)
    )
    revoke_key(
        deployed.aggregator.store,
        load_api_keys(deployed.aggregator.store).find(key).id,  # type: ignore[union-attr] # it is there
        deployed.clocks.now,
    )
    deployed.aggregator.watch.refresh()

    assert (without.status, without.problem) == (401, "no-key")
    assert without.headers["WWW-Authenticate"] == 'Bearer realm="veilcount"'
    assert 'error="invalid_token"' in wrong.headers["WWW-Authenticate"]
    assert right.json == {"verdicts": ["counted"]}
    assert deployed.send(Batch((report,)), key=key).status == 401
    assert deployed.send(Batch((report,))).status == 401


@pytest.mark.parametrize("role", [Role.ANALYST, Role.ADMIN])
def test_other_keys_do_not_open_the_intake(deployed: Deployment, role: Role) -> None:
    """The role that would is named."""
    deployed.key(Role.DEVICE)
    answer = deployed.send(Batch((deployed.report("theme"),)), key=deployed.key(role))

    assert (answer.status, answer.problem) == (403, "wrong-role")
    assert "device" in answer.json["detail"]


def test_a_refused_key_costs_no_reading(deployed: Deployment) -> None:
    """The body stays where it is."""
    deployed.key(Role.DEVICE)

    assert (
        deployed.ask("POST", PATH, environ={"CONTENT_LENGTH": "9", "wsgi.input": Unread()}).status
        == 401
    )


def test_each_key_has_its_rate(tmp_path: Path) -> None:
    """Divided by the workers; one key's haste is not another's; it comes back with time."""
    with deployment(tmp_path, FILE, rate_limit=8, workers=4) as hasty:
        one, other = hasty.key(Role.DEVICE), hasty.key(Role.DEVICE)
        first = [hasty.send(Batch((hasty.report("theme"),)), key=one) for _ in range(6)]
        alongside = hasty.send(Batch((hasty.report("theme"),)), key=other)
        hasty.clocks.passed += 1.0
        after = [hasty.send(Batch((hasty.report("theme"),)), key=one).status for _ in range(3)]

        assert [each.status for each in first] == [200] * 4 + [429] * 2
        assert (first[-1].problem, first[-1].headers["Retry-After"]) == ("too-many", "1")
        assert alongside.status == 200
        assert after == [200, 200, 429]


def test_an_open_intake_has_one_rate_for_all(tmp_path: Path) -> None:
    """The response is the same for both."""
    with deployment(tmp_path, FILE, rate_limit=1) as hasty:
        statuses = [hasty.send(Batch((hasty.report("theme"),))).status for _ in range(3)]

        assert statuses == [200, 200, 429]


def test_guesses_are_answered_slowly(deployed: Deployment) -> None:
    """By nobody's address: all together. A right key is never in the way of them."""
    key = deployed.key(Role.DEVICE)
    statuses = {
        deployed.send(Batch((deployed.report("theme"),)), key="wrong").status for _ in range(50)
    }

    assert statuses == {401, 429}
    assert deployed.send(Batch((deployed.report("theme"),)), key=key).status == 200


def test_a_key_is_marked_once_a_day(deployed: Deployment) -> None:
    """The day and nothing finer."""
    key = deployed.key(Role.DEVICE)
    store = deployed.aggregator.store
    deployed.verdicts(deployed.report("theme"), key=key)
    generation = store.generation()
    deployed.verdicts(deployed.report("theme"), key=key)

    assert load_api_keys(store).find(key).used == "2026-12-03"  # type: ignore[union-attr] # it is there
    assert store.generation() == generation


# -- faults of ours --------------------------------------------------------------------------------


class Breaking:
    """A store in front of the real one, which fails the next commit."""

    def __init__(self, store: Any, error: Exception) -> None:
        """Fail with this."""
        self._store = store
        self._error: Exception | None = error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, group: Any, notes: Any) -> Any:
        """Fail once, then do as the real one does."""
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self._store.commit(group, notes)


def broken(deployed: Deployment, error: Exception) -> None:
    """Let the next commit fail."""
    committer = deployed.aggregator.intake.commit.__self__  # type: ignore[attr-defined] # a method
    committer._store = Breaking(committer._store, error)


MARK = "MARKED-WORDS"
FAULTS = [
    (StoreUnavailable(MARK), 503, "unavailable"),
    (StoreFull(MARK), 503, "unavailable"),
    (StoreReadOnly(MARK), 503, "unavailable"),
    (StoreUnfit(MARK), 503, "unavailable"),
    (StoreError(MARK), 503, "unavailable"),
    (Overloaded(7, "much waits"), 503, "busy"),
    (RuntimeError(MARK), 500, "failed"),
    (ValueError(MARK), 500, "failed"),
    (MemoryError(MARK), 500, "failed"),
    (AssertionError(MARK), 500, "failed"),
]


@pytest.mark.parametrize(("error", "status", "name"), FAULTS)
def test_a_fault_of_ours_keeps_the_report_on_the_device(
    deployed: Deployment, error: Exception, status: int, name: str
) -> None:
    """The device is asked to retry, never to drop; and the next attempt counts."""
    broken(deployed, error)
    report = deployed.report("theme")
    answer = deployed.send(Batch((report,)))

    assert (answer.status, answer.problem) == (status, name)
    assert answer.headers["Retry-After"] == ("7" if name == "busy" else "2")
    assert status not in DROPS
    assert MARK not in answer.body.decode()
    assert deployed.verdicts(report) == [Verdict.COUNTED]


def test_a_fault_of_ours_leaves_one_line_without_its_words(
    deployed: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    """The kind and the place in the code; the words may repeat what was sent."""
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            broken(deployed, RuntimeError(MARK))
            deployed.send(Batch((deployed.report("theme"),)))

    assert len(caplog.records) == 1
    assert MARK not in json.dumps([str(vars(record)) for record in caplog.records])
    assert "RuntimeError" in str(vars(caplog.records[0]))


def test_no_error_of_our_own_code_makes_a_device_drop(
    deployed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even an error that, raised by a body, would."""
    from veilcount_shared.errors import BadField, DefinitionError  # noqa: PLC0415

    for error in (BadField("x", "y"), DefinitionError("x", 1, "y")):
        broken(deployed, error)

        assert deployed.send(Batch((deployed.report("theme"),))).status == 500


def client_outcome(reply: Response, deployed: Deployment, report: object) -> object:
    """Return what the real client makes of an answer."""
    transport = WsgiTransport(lambda environ, start: _play(reply, start))
    return transport.send(encode_binary(Batch((report,))), 1)  # type: ignore[arg-type] # a report


def _play(reply: Response, start: Any) -> Iterator[bytes]:
    start(f"{reply.status} X", list(reply.headers.items()))
    return iter([reply.body])


def test_the_client_drops_what_is_no_batch_and_keeps_the_rest(deployed: Deployment) -> None:
    """By its own reading of our answers."""
    report = deployed.report("theme")
    refused = deployed.send(Batch((report,), test=True))
    broken(deployed, StoreUnavailable(""))
    away = deployed.send(Batch((report,)))
    taken = deployed.send(Batch((report,)))

    assert client_outcome(refused, deployed, report) == Rejected("400")
    assert client_outcome(away, deployed, report) == Later("503", 60.0)
    assert client_outcome(taken, deployed, report) == Delivered((Verdict.COUNTED,))


def test_many_at_once_are_counted_once_each(deployed: Deployment) -> None:
    """Sixteen threads send their own reports and one that all of them have."""
    shared = deployed.report("theme")
    own = [[deployed.report("theme") for _ in range(10)] for _ in range(16)]
    result: list[Verdict] = []

    def send(mine: list[Any]) -> None:
        for report in mine:
            result.extend(deployed.verdicts(report, shared))

    threads = [threading.Thread(target=send, args=(mine,)) for mine in own]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert result.count(Verdict.COUNTED) == 161 == deployed.counted("theme")
    assert result.count(Verdict.DUPLICATE) == 159
