"""`POST /v1/reports`: what is taken, what is refused and how, and whose fault it is."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from dataclasses import replace
from itertools import chain, product, repeat
from pathlib import Path
from typing import Any
from unittest.mock import DEFAULT, Mock

import numpy as np
import pytest

from veilcount_aggregator.errors import (
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnfit,
)
from veilcount_aggregator.intake.live_reports import LiveReports
from veilcount_aggregator.records.api_keys import Role, load_api_keys, revoke_key
from veilcount_aggregator.server.app import assemble
from veilcount_aggregator.store import VERDICTS
from veilcount_aggregator.web.api.reports import reply
from veilcount_client.delivery.transport import Delivered, Later, Rejected
from veilcount_client.testing.doubles import WsgiTransport
from veilcount_serving.errors import Overloaded
from veilcount_shared.errors import BadField, DefinitionError
from veilcount_shared.report import Batch
from veilcount_shared.verdict import UNKNOWN_VERDICT, Verdict
from veilcount_shared.wire import (
    BINARY_TYPE,
    JSON_TYPE,
    MAX_BODY,
    decode_verdicts,
    encode_binary,
    encode_json,
    encode_verdicts,
)

from .deployment_fixtures import FILE, Deployment, deployment

PATH = "/v1/reports"
#: of a server that tells the end of a body without a length, as of a chunked one
UNANNOUNCED = {"CONTENT_LENGTH": "", "wsgi.input_terminated": True}


class Unread(io.BytesIO):
    def read(self, *_: Any) -> bytes:
        raise AssertionError("was read")


class Gone(io.BytesIO):
    """A device that went away in the middle."""

    def read(self, *_: Any) -> bytes:
        raise ConnectionResetError


UNREAD = {"wsgi.input": Unread()}


# -- taken -----------------------------------------------------------------------------------------


def test_each_report_gets_its_verdict(deployed: Deployment) -> None:
    good = deployed.report("theme")
    expected = [
        (good, Verdict.COUNTED),
        (good, Verdict.DUPLICATE),
        (replace(good, fingerprint="0" * 64), Verdict.UNKNOWN_COLLECTION),
        (deployed.report("opened", period=3), Verdict.EARLY),
        (deployed.report("opened", slot=2), Verdict.OVER_BUDGET),
        (deployed.report("opened", segment=2), Verdict.MALFORMED),
        (deployed.report("opened", segment=1), Verdict.COUNTED),
        (deployed.report("theme", message=b"\xff"), Verdict.MALFORMED),
    ]

    assert deployed.verdicts(*(sent for sent, _ in expected)) == [
        verdict for _, verdict in expected
    ]
    assert deployed.verdicts(deployed.report("theme", message=b"\1\1")) == [Verdict.MALFORMED]
    assert (deployed.counted("theme"), deployed.counted("opened")) == (1, 1)


def test_the_reply_is_kept_by_nobody(deployed: Deployment) -> None:
    reply = deployed.send(Batch((deployed.report("theme"), deployed.report("theme"))))

    assert json.loads(reply.body)["verdicts"] == ["counted", "counted"]
    assert reply.headers == {
        "Content-Type": JSON_TYPE,
        "Content-Length": str(len(reply.body)),
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }


@pytest.mark.parametrize(
    ("kind", "coding", "problem"),
    [
        (JSON_TYPE, "", f"Content-Type: give {BINARY_TYPE}: `veilcount encode` translates"),
        (JSON_TYPE, "gzip", f"Content-Type: give {BINARY_TYPE}: `veilcount encode` translates"),
        (BINARY_TYPE, "gzip", "Content-Encoding: give none: a body is never compressed"),
    ],
)
def test_what_is_not_binary_as_it_is_gets_415_and_is_not_read(
    deployed: Deployment, monkeypatch: pytest.MonkeyPatch, kind: str, coding: str, problem: str
) -> None:
    """A few bytes of it can hold as much work as a thousand reports."""
    body = encode_json(Batch((deployed.report("theme"),)))
    for module, name in ((json, "loads"), (gzip, "decompress"), (zlib, "decompressobj")):
        monkeypatch.setattr(module, name, unwanted)
    raw = zlib.compress(body) if coding else body
    refused = deployed.ask("POST", PATH, raw, kind=kind, environ={"HTTP_CONTENT_ENCODING": coding})
    monkeypatch.undo()

    assert (refused.status, refused.problem) == (415, "unsupported")
    assert problem in refused.json["detail"]
    assert deployed.counted("theme") == 0


def unwanted(*_: object, **__: object) -> None:
    raise AssertionError("production reads no JSON and decompresses nothing")


def test_a_reply_is_spelled_as_the_protocol_does() -> None:
    """With a drawn member besides, by which no client notices anything, nor by its length."""
    codes = range(len(VERDICTS))
    lists = [list(combination) for size in range(4) for combination in product(codes, repeat=size)]

    for chosen in [*lists, list(codes) * 111]:
        verdicts = [VERDICTS[code] for code in chosen]
        written = reply(np.array(chosen, np.uint8))
        assert decode_verdicts(written, len(chosen)) == tuple(verdicts)
        assert len(written) == len(encode_verdicts(verdicts)) + 21


def test_every_reply_has_a_member_that_no_release_knows() -> None:
    """Of a name and a value that nobody can rely on."""
    replies = [json.loads(reply(np.array([0], np.uint8))) for _ in range(500)]
    members = {
        name: value for each in replies for name, value in each.items() if name != "verdicts"
    }

    assert [list(each.pop("verdicts")) for each in replies] == [["counted"]] * 500
    assert all(len(each) == 1 for each in replies)
    assert len(members) > 100
    assert len({type(value) for value in members.values()}) == 5


def test_in_development_some_verdicts_are_unknown_and_the_reports_duplicates_then(
    tmp_path: Path,
) -> None:
    """So that a client which loses a report on a verdict of a later release is found out."""
    live = LiveReports(lambda _: None)
    with deployment(tmp_path, FILE, dev=True) as developing:
        app = assemble(developing.aggregator, live=live).flask
        transport = WsgiTransport(app)
        bodies = [encode_binary(Batch((developing.report("theme"),))) for _ in range(250)]
        outcomes = [[transport.send(body, 1) for body in bodies] for _ in range(2)]

        assert developing.counted("theme") == 250
    unknown = [
        place for place, each in enumerate(outcomes[0]) if each == Delivered((UNKNOWN_VERDICT,))
    ]
    assert unknown == [99, 199]
    assert set(outcomes[1]) == {Delivered((Verdict.DUPLICATE,))}


def test_a_body_without_a_length_is_read_to_its_end_or_to_the_limit(deployed: Deployment) -> None:
    """Where the server tells the end. Otherwise there is none."""
    raw, long = encode_binary(Batch((deployed.report("theme"),))), io.BytesIO(bytes(3 * MAX_BODY))
    chunked = deployed.ask("POST", PATH, raw, kind=BINARY_TYPE, environ=UNANNOUNCED)
    unknown = deployed.ask("POST", PATH, raw, kind=BINARY_TYPE, environ={"CONTENT_LENGTH": ""})
    refused = deployed.ask("POST", PATH, environ=UNANNOUNCED | {"wsgi.input": long})

    assert chunked.json["verdicts"] == ["counted"]
    assert (unknown.problem, refused.problem) == ("wrong-length", "too-large")
    assert long.tell() == MAX_BODY + 1


def test_a_test_batch_is_counted_in_development_only(deployed: Deployment, tmp_path: Path) -> None:
    """It is refused by name, so that a developer sees why."""
    refused = deployed.send(Batch((deployed.report("theme"),), test=True))
    with deployment(tmp_path / "dev", FILE, dev=True) as developing:
        taken = developing.send(Batch((developing.report("theme"),), test=True))

    assert (refused.problem, refused.json["place"]) == ("bad-field", "test")
    assert deployed.counted("theme") == 0
    assert taken.json["verdicts"] == ["counted"]


# -- refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "kind", "environ", "result"),
    [
        (b"VC\3", BINARY_TYPE, {}, (400, "unknown-version", "version")),
        (b"VC\1\2", BINARY_TYPE, {}, (400, "bad-field", "flags")),
        (b"", BINARY_TYPE, {}, (400, "wrong-length", "head")),
        (b"{}", JSON_TYPE, {}, (415, "unsupported", "Content-Type")),
        (b"x", "text/plain", {}, (415, "unsupported", "Content-Type")),
        (b"x", BINARY_TYPE, {"CONTENT_LENGTH": "-1"}, (400, "bad-field", "Content-Length")),
        (b"x", BINARY_TYPE, {"CONTENT_LENGTH": "\uff11"}, (400, "bad-field", "Content-Length")),
        (b"", "", {"CONTENT_LENGTH": str(MAX_BODY + 1)} | UNREAD, (413, "too-large", "body")),
        (b"", "", {"CONTENT_LENGTH": "9" * 5000} | UNREAD, (413, "too-large", "body")),
        (b"VC", BINARY_TYPE, {"CONTENT_LENGTH": "50"}, (408, "incomplete", None)),
        (b"", BINARY_TYPE, {"wsgi.input": Gone()}, (408, "incomplete", None)),
    ],
)
def test_an_invalid_batch_is_refused_as_a_whole(
    deployed: Deployment, body: bytes, kind: str, environ: dict[str, Any], result: tuple[Any, ...]
) -> None:
    """One that is too long is not read, and one that was cut on the way is to be sent again."""
    answer = deployed.ask("POST", PATH, body, kind=kind, environ=environ)

    assert (answer.status, answer.problem, answer.json.get("place")) == result


# -- keys and rates --------------------------------------------------------------------------------


def test_devices_need_a_key_once_there_is_one(deployed: Deployment) -> None:
    """And for ever after: revoking the last one opens nothing. A body is not read without."""
    report, store = deployed.report("theme"), deployed.aggregator.store
    assert deployed.send(Batch((deployed.report("theme"),))).status == 200
    key = deployed.key(Role.DEVICE)
    without = deployed.ask("POST", PATH, environ=UNREAD | {"CONTENT_LENGTH": "9"})
    wrong, right = (deployed.send(Batch((report,)), key=each) for each in ("veilcount_x", key))
    (device,) = (key for key in load_api_keys(store).keys.values() if key.role is Role.DEVICE)
    deployed.aggregator.flush()
    used = load_api_keys(store).keys[device.digest].used
    revoke_key(store, device.id, deployed.clocks.now)
    deployed.aggregator.catalog_cache.refresh()

    assert used == "2026-12-03"
    assert (without.status, without.problem) == (401, "no-key")
    assert without.headers["WWW-Authenticate"] == 'Bearer realm="veilcount"'
    assert 'error="invalid_token"' in wrong.headers["WWW-Authenticate"]
    assert right.json["verdicts"] == ["counted"]
    assert [deployed.send(Batch((report,)), key=each).status for each in ("", key)] == [401, 401]


def test_each_key_has_its_rate_and_an_open_intake_has_one_for_all(tmp_path: Path) -> None:
    """Divided by the workers; one key's haste is not another's; it comes back with time."""
    with deployment(tmp_path, FILE, rate_limit=8, workers=4) as hasty:

        def send(times: int, key: str = "") -> list[int]:
            sent = [hasty.send(Batch((hasty.report("theme"),)), key=key) for _ in range(times)]
            for each in sent:
                if each.status == 429:
                    assert (each.problem, each.headers["Retry-After"]) == ("too-many", "1")
            return [each.status for each in sent]

        before_any_key = send(6)
        one, other = hasty.key(Role.DEVICE), hasty.key(Role.DEVICE)

        assert before_any_key == send(6, one) == [200] * 4 + [429] * 2
        assert send(1, other) == [200]
        hasty.clocks.passed += 1.0
        assert send(3, one) == [200, 200, 429]


def test_guesses_are_answered_slowly(deployed: Deployment) -> None:
    """By nobody's address: all together. A right key is never in the way of them."""
    key = deployed.key(Role.DEVICE)
    batch = Batch((deployed.report("theme"),))

    assert {deployed.send(batch, key="wrong").status for _ in range(50)} == {401, 429}
    assert deployed.send(batch, key=key).status == 200


# -- faults of ours --------------------------------------------------------------------------------


def broken(deployed: Deployment, error: Exception) -> None:
    """Let the next commit fail, and those after it do as the store does."""
    committer: Any = deployed.aggregator.pipeline.commit.__self__  # type: ignore[attr-defined] # a method
    committer._store = Mock(wraps=committer._store)
    committer._store.commit.side_effect = chain([error], repeat(DEFAULT))


MARK = "MARKED-WORDS"
STORE_ERRORS = (StoreUnavailable, StoreFull, StoreReadOnly, StoreUnfit, StoreError)
#: the last two would be the device's fault if its body raised them
OWN_ERRORS = (
    *(error(MARK) for error in (RuntimeError, ValueError, MemoryError, AssertionError)),
    *(BadField("x", MARK), DefinitionError("x", 1, MARK)),
)
FAULTS = [
    (Overloaded(7, "much waits"), (503, "busy", "7")),
    *((error(MARK), (503, "unavailable", "2")) for error in STORE_ERRORS),
    *((error, (500, "failed", "2")) for error in OWN_ERRORS),
]


def test_a_fault_of_ours_keeps_the_report_on_the_device(deployed: Deployment) -> None:
    """It is asked to retry, never to drop (400, 413, 415, 422); and the next attempt counts."""
    for error, expected in FAULTS:
        broken(deployed, error)
        report = deployed.report("theme")
        answer = deployed.send(Batch((report,)))

        assert (answer.status, answer.problem, answer.headers["Retry-After"]) == expected
        assert MARK not in answer.body.decode()
        assert deployed.verdicts(report) == [Verdict.COUNTED]


def test_the_client_drops_what_is_no_batch_and_keeps_the_rest(deployed: Deployment) -> None:
    transport, report = WsgiTransport(deployed.app.wsgi_app), deployed.report("theme")

    assert transport.send(encode_binary(Batch((report,), test=True)), 1) == Rejected("400")
    broken(deployed, StoreUnavailable(""))
    assert transport.send(encode_binary(Batch((report,))), 1) == Later("503", 60.0)
    assert transport.send(encode_binary(Batch((report,))), 1) == Delivered((Verdict.COUNTED,))
