"""doctor, on the way through a relay and to an issuer: each finding says what to do."""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path

import pytest

from veilcount_client.diagnostics.doctor import examine
from veilcount_client.settings import read_settings
from veilcount_shared.diagnostic_result import DiagnosticResult
from veilcount_shared.installing import install
from veilcount_shared.oblivious_http.encapsulation import RESPONSE_TYPE
from veilcount_shared.oblivious_http.key_config import KEY_PROBLEM, KeyConfig
from veilcount_shared.oblivious_http.key_file import encode_key_file
from veilcount_shared.shuffling.envelope import Envelope

from ..delivery.app_client import NOBODY
from ..delivery.server_fixtures import Behaviour, answering, problem, serving
from ..device_fixtures import definitions_text
from .app_file import FILE, NOW

PROBLEM = "application/problem+json"
KEY = KeyConfig(3, bytes([9]) + bytes(31))
KEY_FILE = encode_key_file([(date(2026, 11, 1), KEY.encode())]).encode()
TOKENS = (
    FILE.split("\n[", maxsplit=1)[0]
    + """
[theme]
question = "Is it dark?"
boolean = true
epsilon = 1
unit = "day"
from = 2026-11-01
until = 2026-11-03
linkage = "token"
answers = 1
tokens = "{digest}"
"""
)


def found(folder: Path, file: str = FILE, **options: str) -> dict[str, DiagnosticResult]:
    (folder / "collections.toml").write_text(file, encoding="utf-8")
    account = options.pop("account", None)
    options |= {"collections": str(folder / "collections.toml"), "state": str(folder / "state")}
    results = examine(read_settings({}, **options), NOW.timestamp, account)
    return {each.subject: each for each in results}


@pytest.fixture
def keys(tmp_path: Path) -> str:
    path = tmp_path / "relay.keys"
    path.write_bytes(KEY_FILE)
    return str(path)


@pytest.mark.parametrize(
    ("relay", "content", "subject", "words"),
    [
        ("relay.example.net", None, "relay", "give 'https://"),
        (NOBODY, None, "relay keys", "relay-keys create --out"),
        (NOBODY, b"", "relay keys", "ship the file"),
        (NOBODY, b"no keys at all", "relay keys", "ship the file"),
        (NOBODY, KEY_FILE[:-9], "relay keys", "ship the file"),
        (NOBODY, KEY_FILE.replace(b"0020", b"0010", 1), "relay keys", "X25519"),
        (NOBODY, KEY_FILE, "relay", "cannot be reached"),
    ],
)
def test_what_is_wrong_before_the_relay_is_named(
    tmp_path: Path, relay: str, content: bytes | None, subject: str, words: str
) -> None:
    options = {"relay": relay}
    if content is not None:
        (tmp_path / "relay.keys").write_bytes(content)
        options["relay_keys"] = str(tmp_path / "relay.keys")
    result = found(tmp_path, **options)[subject]

    assert not result.ok
    assert words in result.message


@pytest.mark.parametrize(
    ("status", "kind", "body", "subject", "words"),
    [
        (400, PROBLEM, f'{{"type": "{KEY_PROBLEM}"}}', "gateway key 3", "ship the file"),
        (401, PROBLEM, f'{{"type": "{KEY_PROBLEM}"}}', "gateway key 3", "ship the file"),
        (400, PROBLEM, '{"type": "about:blank"}', "relay", "check the relay; reports wait (400)"),
        (404, "text/html", "<html>", "relay", "check the relay; reports wait (404)"),
        (200, RESPONSE_TYPE, "z" * 80, "relay", "(changed on the way)"),
        (502, "text/plain", "", "relay", "(502)"),
    ],
)
def test_what_the_relay_replies_is_explained(
    tmp_path: Path, keys: str, *, status: int, kind: str, body: str, subject: str, words: str
) -> None:
    """No other line claims that the way is open; the app's key is in no header."""
    with serving(answering(status, body.encode(), Content_Type=kind)) as server:
        results = found(tmp_path, relay=server.url, relay_keys=keys, key="secret")
    result = results[subject]

    assert not result.ok
    assert words in result.message
    assert "aggregator" not in results
    assert results["relay keys"].message == "key 3 (X25519, AES-128-GCM, ChaCha20-Poly1305)"
    assert all(each.header("Authorization") is None for each in server.requests)


def test_a_missing_library_is_named(
    tmp_path: Path, keys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "veilcount_client.delivery.relay", raising=False)
    monkeypatch.setitem(sys.modules, "veilcount_shared.oblivious_http.encapsulation", None)
    result = found(tmp_path, relay=NOBODY, relay_keys=keys)["relay"]

    assert not result.ok
    assert install("relay") in result.message


@pytest.mark.parametrize(
    ("options", "status", "body", "subject", "words"),
    [
        ({}, None, "", "issuer", "--issuer"),
        ({"issuer": "ftp://x"}, None, "", "issuer", "give 'https://"),
        ({"issuer": "http://issuer.example.net"}, None, "", "issuer", "in clear"),
        ({"issuer": NOBODY}, None, "", "issuer, theme", "cannot be reached"),
        ({}, 404, "", "issuer, theme", "load the app's definitions file"),
        ({}, 200, "no JSON", "issuer, theme", "no token is asked for"),
        ({}, 200, json.dumps({"keys": []}), "issuer, theme", "no token is asked for"),
        ({"account": "x"}, 401, "", "account", "issuer account-token"),
        ({"account": "x"}, 503, "", "account", "try again later"),
        ({"account": "x", "issuer": NOBODY}, None, "", "account", "cannot be reached"),
    ],
)
def test_what_is_wrong_of_the_issuer_is_named(
    tmp_path: Path,
    *,
    options: dict[str, str],
    status: int | None,
    body: str,
    subject: str,
    words: str,
) -> None:
    file = TOKENS.format(digest="0" * 64)
    if status is None:
        result = found(tmp_path, file, **options)[subject]
    else:
        with serving(answering(status, body.encode())) as server:
            result = found(tmp_path, file, issuer=server.url, **options)[subject]

    assert not result.ok
    assert words in result.message


def test_collections_without_tokens_need_no_issuer(tmp_path: Path) -> None:
    with serving(answering(200)) as server:
        results = found(tmp_path, issuer=server.url)

    assert not server.requests
    assert not {"issuer", "account"} & results.keys()


# -- the shuffler ----------------------------------------------------------------------------------


SHUFFLED = definitions_text(
    "acme-editor",
    {"unit": "month", "from": "2026-11-01", "until": "2027-05-01", "batch": {"least": 50}},
    theme={"question": "Which theme is active?", "values": ["light", "dark", "system"]},
)


@pytest.mark.parametrize(
    ("shuffler", "has_keys", "subject", "words"),
    [
        (None, True, "shuffler", "give Client(shuffler=URL, relay_keys=FILE)"),
        ("shuffler.example.net", True, "shuffler", "give 'https://"),
        ("http://shuffler.example.net", True, "shuffler", "over http:// the name of a report's"),
        (NOBODY, False, "shuffler", "relay-keys create --out"),
        (NOBODY, True, "shuffler", "cannot be reached"),
    ],
)
def test_what_is_wrong_on_the_way_to_the_shuffler_is_named(
    tmp_path: Path, keys: str, *, shuffler: str | None, has_keys: bool, subject: str, words: str
) -> None:
    options = {"shuffler": shuffler} if shuffler else {}
    if has_keys:
        options["relay_keys"] = keys
    results = found(tmp_path, SHUFFLED, **options)

    assert not results[subject].ok
    assert words in results[subject].message
    assert "aggregator" not in results, "nothing goes there"


@pytest.mark.parametrize(
    ("reply", "ok", "words"),
    [
        (problem(404), True, "takes envelopes"),
        (answering(404), False, "does not serve this period"),
        (answering(503), False, "busy or down"),
        (answering(202), False, "not as a shuffler would"),
    ],
)
def test_what_the_shuffler_replies_is_explained_and_it_is_sent_no_report(
    tmp_path: Path, keys: str, reply: Behaviour, *, ok: bool, words: str
) -> None:
    with serving(reply) as server:
        results = found(tmp_path, SHUFFLED, shuffler=server.url, relay_keys=keys)

    assert (results["shuffler"].ok, words in results["shuffler"].message) == (ok, True)
    assert results["shuffler, theme"].message == "reports travel by 127.0.0.1, sealed under key 3"
    assert [Envelope.decode(request.body).sealed for request in server.requests] == [b""]


def test_a_period_without_a_key_is_named(tmp_path: Path) -> None:
    later = encode_key_file([(date(2026, 12, 15), KEY.encode())])
    (tmp_path / "relay.keys").write_text(later, encoding="utf-8")
    keys = str(tmp_path / "relay.keys")
    result = found(tmp_path, SHUFFLED, shuffler=NOBODY, relay_keys=keys)["shuffler, theme"]

    assert not result.ok
    assert "begins on 2026-12-01, so it is not answered" in result.message
