"""The issuer over HTTP: what it gives an honest device, and an active adversary."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from werkzeug.test import TestResponse

from veilcount_aggregator.errors import StoreUnavailable
from veilcount_client.delivery.issuer import _left
from veilcount_issuer.app import METRICS_PATH
from veilcount_issuer.period_keys import make_keys
from veilcount_issuer.signing import SigningKey
from veilcount_shared.tokens import PublicKey, parse_key
from veilcount_shared.wire import encode_base64

from ..aggregator.store.engines import Empty
from ..security.access_table import ISSUER, Kind, routed
from .issuer_fixtures import BEGIN, Issuance, decode, document, problem


def test_the_access_table_is_what_is_served(issuance: Issuance) -> None:
    """What needs an account answers nobody else, and the rest is the same for everybody."""
    assert sorted(routed(issuance.web.application)) == sorted(map(str, ISSUER))
    for rule in ISSUER:
        path = rule.path.replace("<fingerprint>", issuance.theme.fingerprint)
        replies = [
            issuance.web.open(path, method=rule.method, headers=headers)
            for headers in ({}, issuance.bearer("alice"), {"Authorization": "Bearer x"})
        ]
        if rule.kind is Kind.ACCOUNT:
            assert [each.status_code for each in replies] == [401, 415, 401]
        else:
            assert {each.status_code for each in replies} == {200}
            assert rule.path == METRICS_PATH or len({each.data for each in replies}) == 1


def test_a_device_gets_tokens_that_verify_and_the_same_ones_again(issuance: Issuance) -> None:
    slots = issuance.slots([0, 3])
    tokens = issuance.tokens("alice", slots)

    assert issuance.tokens("alice", slots[::-1]) == tokens[::-1]
    assert issuance.tokens("bob", issuance.slots([1], person=1)) != tokens[:1]


def test_everybody_gets_the_same_key_list(issuance: Issuance) -> None:
    path = f"/v1/token-keys/{issuance.theme.fingerprint}"
    first, second = (issuance.web.get(path, headers=issuance.bearer(who)) for who in "ab")

    assert first.data == second.data == issuance.web.get(path).data
    assert first.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    unknown = issuance.web.get("/v1/token-keys/" + "0" * 64)
    assert (problem(unknown), unknown.headers["Cache-Control"]) == ("not-found", "no-store")


def test_pages_of_listed_origins_may_ask_and_no_other(issuance: Issuance) -> None:
    """A list of keys is kept by caches, for pages and devices apart."""
    app, other = "https://app.example.org", "https://elsewhere.example"
    pages = replace(issuance, origins=(app,))
    keys = f"/v1/token-keys/{issuance.theme.fingerprint}"
    for path, method in ((keys, "GET"), ("/v1/tokens", "POST")):
        headers = {"Origin": app} | pages.bearer("a")
        taken, preflight = (
            pages.web.open(path, method=each, headers=headers) for each in (method, "OPTIONS")
        )
        refused = pages.web.open(path, method=method, headers={"Origin": other})

        assert taken.headers["Access-Control-Allow-Origin"] == app
        assert (preflight.status_code, preflight.data) == (204, b"")
        assert preflight.headers["Access-Control-Allow-Methods"] == "GET, POST"
        assert preflight.headers["Access-Control-Allow-Headers"] == "Authorization, Content-Type"
        assert problem(refused) == "wrong-origin"
        assert "Access-Control-Allow-Origin" not in refused.headers
        assert pages.web.options(path).status_code == 405
    assert issuance.web.get(keys).headers["Vary"] == "Origin"
    assert problem(issuance.web.get(keys, headers={"Origin": app})) == "wrong-origin"
    assert pages.web.get("/health/live", headers={"Origin": other}).status_code == 200


def test_caps_hold_by_period_and_for_life(issuance: Issuance) -> None:
    """Two of four periods, one token each; what is refused leaves no trace."""
    issuance.tokens("alice", issuance.slots([1]))
    reply = issuance.ask("alice", issuance.requests(issuance.slots([1, 2], person=9)))

    assert (problem(reply), reply.status_code) == ("over-cap", 409)
    assert (document(reply)["left"], document(reply)["periods_left"]) == ({"1": 0, "2": 1}, 1)
    third = issuance.slots([1, 2, 3])
    assert problem(issuance.ask("alice", issuance.requests(third))) == "over-cap"
    issuance.tokens("alice", issuance.slots([2]))
    assert problem(issuance.ask("alice", issuance.requests(third[2:]))) == "over-cap"
    issuance.tokens("bob", third[2:])


def test_several_answers_a_day_are_several_tokens(issuance: Issuance) -> None:
    both = [*issuance.slots([0], name="crash"), *issuance.slots([0], answer=1, name="crash")]
    issuance.tokens("alice", both, "crash")
    third = issuance.requests(issuance.slots([0], answer=2, name="crash"), "crash")

    assert problem(issuance.ask("alice", third, "crash")) == "over-cap"


def test_a_duplicate_in_one_request_is_one_token(issuance: Issuance) -> None:
    wanted = issuance.requests(issuance.slots([0])) * 3
    reply = issuance.ask("alice", wanted)

    assert len(set(document(reply)["signatures"])) == 1
    assert len(document(reply)["signatures"]) == 3


def test_what_is_no_blinded_message_is_refused_and_costs_nothing(issuance: Issuance) -> None:
    n = issuance.keys(issuance.theme)[0].n
    good = issuance.requests(issuance.slots([0, 1]))
    numbers = [0, 1, n - 1, n, n + 1, 2**2048 - 1]
    wrong: list[Any] = [encode_base64(each.to_bytes(256, "big")) for each in numbers]
    text = good[0]["blinded"]
    wrong += [text[:-1], text + "A", text[:-1] + "=", " " + text[1:], "é" * 342, "", 7, None]
    wrong += [text[:-1] + chr(ord(text[-1]) + 1)]  # bits that no byte holds
    for blinded in wrong:
        request = {"period": 0, "blinded": blinded}
        reply = issuance.ask("alice", [good[1], request])
        assert (reply.status_code, problem(reply)) == (400, "bad-field"), blinded
        assert not blinded or str(blinded) not in document(reply)["detail"], "it is not echoed"

    issuance.tokens("alice", issuance.slots([2, 3]))


def test_a_period_of_no_campaign_is_refused(issuance: Issuance) -> None:
    (good,) = issuance.requests(issuance.slots([1]))
    for period in (4, 65_535, 65_536, -1, "1", 1.0, 1.5, True, None, 10**400):
        reply = issuance.ask("alice", [{**good, "period": period}])
        assert (reply.status_code, problem(reply)) == (400, "bad-field"), period


def test_nothing_is_signed_for_a_period_that_has_begun(issuance: Issuance) -> None:
    """Not even what was signed before; the device reads in `over` what it is to leave out."""
    first, second = issuance.requests(issuance.slots([0, 1]))
    issuance.now = BEGIN - timedelta(seconds=1)
    assert issuance.ask("alice", [first]).status_code == 200
    issuance.now = BEGIN
    reply = issuance.ask("alice", [first, second])

    assert (problem(reply), document(reply)["over"]) == ("period-begun", [0])
    assert _left(reply.data, {0, 1}) == {1}
    assert issuance.ask("alice", [second]).status_code == 200


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("{", "bad-request"),
        ("[" * 100_000, "too-large"),
        ("[" * 60_000, "bad-request"),
        ("[]", "bad-field"),
        ('{"fingerprint": "a", "requests": []}', "bad-field"),
        ('{"fingerprint": "a", "requests": [{}]}', "bad-field"),
        ('{"fingerprint": "a", "requests": [1], "more": 1}', "bad-field"),
        ('{"fingerprint": "a", "fingerprint": "b", "requests": [1]}', "bad-request"),
        ('{"fingerprint": "a", "requests": NaN}', "bad-field"),
        ("1" * 5000, "bad-request"),
        ('{"fingerprint": "a"}'.encode("utf-16"), "bad-request"),
        ("\ud800".encode("utf-8", "surrogatepass"), "bad-request"),
    ],
    ids=lambda text: str(text[:20]),
)
def test_a_malformed_body_is_refused(issuance: Issuance, body: str, expected: str) -> None:
    headers = issuance.bearer("alice") | {"Content-Type": "application/json"}
    reply = issuance.web.post("/v1/tokens", data=body, headers=headers)

    assert problem(reply) == expected


def test_limits_of_a_request(issuance: Issuance) -> None:
    (one,) = issuance.requests(issuance.slots([0]))
    assert issuance.ask("alice", [one] * 128).status_code == 200
    many = issuance.ask("alice", [one] * 129)
    assert (many.status_code, problem(many)) == (413, "too-large")
    assert (document(many)["place"], document(many)["detail"]) == (
        "requests",
        "129 requests: 128 at most",
    )
    assert problem(issuance.ask("alice", [one], more=1)) == "bad-field"
    assert problem(issuance.ask("alice", [one], fingerprint="0" * 64)) == "not-found"
    plain = issuance.collections["plain"].fingerprint
    assert problem(issuance.ask("alice", [one], fingerprint=plain)) == "not-found"
    headers = issuance.bearer("alice")
    assert problem(issuance.web.post("/v1/tokens", data="x", headers=headers)) == "unsupported"
    assert problem(issuance.web.get("/v1/tokens", headers=headers)) == "wrong-method"
    assert problem(issuance.web.get("/v1")) == "not-found"


def test_without_an_account_nothing_is_read(issuance: Issuance) -> None:
    """And nothing of the credential is in the reply or the log."""
    wanted = issuance.requests(issuance.slots([0]))
    token = issuance.bearer("alice")["Authorization"].removeprefix("Bearer ")
    account, expiry, signature = token.split(".")
    changed = signature[:-2] + ("A" if signature[-2] != "A" else "B") + signature[-1]
    wrong = ["", "x", "..", token[:-1], token + "=", f"{account}.{int(expiry) + 1}.{signature}"]
    wrong += [f"{account}.{expiry}.{changed}", f"{account[:-1]}.{expiry}.{signature}", "é.1.a"]
    for each in wrong:
        headers = {"Authorization": f"Bearer {each}"}
        reply = issuance.post({"requests": wanted}, headers)
        assert (reply.status_code, problem(reply)) == (401, "no-account"), each
        assert reply.headers["WWW-Authenticate"] == "Bearer"
        assert len(each) < 5 or each not in reply.text + issuance.log.getvalue()
    assert problem(issuance.ask(None, wanted)) == "no-account"
    assert problem(issuance.post({}, {"Authorization": f"Basic {token}"})) == "no-account"
    headers = issuance.bearer("alice")
    issuance.now += timedelta(hours=1)
    assert problem(issuance.post({"requests": wanted}, headers)) == "no-account", "expired"


def test_guesses_and_endless_requests_are_slowed_down(definitions: Any, store: Any) -> None:
    issuance = Issuance.begun(definitions, store, rate=1)
    wanted = issuance.requests(issuance.slots([0])) * 128
    replies = [issuance.ask("alice", wanted) for _ in range(9)]
    assert [each.status_code for each in replies] == [200] * 8 + [429]
    assert int(replies[-1].headers["Retry-After"]) == 128
    issuance.tokens("bob", issuance.slots([0], person=1))
    guesses = [issuance.post({}, {"Authorization": "Bearer x"}) for _ in range(60)]

    assert {each.status_code for each in guesses} == {401, 429}


def test_figures_name_no_account_and_no_message(issuance: Issuance) -> None:
    wanted = issuance.requests(issuance.slots([0, 1]))
    issuance.ask("alice-account", wanted)
    issuance.ask("alice-account", issuance.requests(issuance.slots([2])))
    issuance.metrics.flush()
    text = issuance.web.get("/metrics").text
    issuance.metrics.flush()

    assert f'tokens_total{{fingerprint="{issuance.theme.fingerprint}"}} 2\n' in text
    assert 'refused_total{problem="over-cap"} 1\n' in text
    assert "requests_total{} 2\n" in text
    assert text == issuance.web.get("/metrics").text
    pieces = b"".join(each.key.encode() + each.body for each in issuance.store.export_pieces())
    for secret in ("alice-account", wanted[0]["blinded"]):
        assert secret not in text + issuance.log.getvalue()
        assert secret.encode() not in pieces


def test_health(issuance: Issuance, monkeypatch: pytest.MonkeyPatch) -> None:
    def replies() -> list[TestResponse]:
        return [issuance.web.get(f"/health/{which}") for which in ("live", "ready")]

    assert [each.status_code for each in replies()] == [200, 200]
    issuance.store.set_read_only(on=True)
    assert [each.status_code for each in replies()] == [200, 503]
    assert problem(issuance.ask("alice", issuance.requests(issuance.slots([0])))) == "unavailable"


def test_a_fault_is_logged_without_what_was_sent(
    issuance: Issuance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object, blinded: bytes) -> bytes:
        raise ValueError(blinded.hex())

    (wanted,) = issuance.requests(issuance.slots([0]))
    with monkeypatch.context() as patched:
        patched.setattr(SigningKey, "sign", fail)
        reply = issuance.ask("alice", [wanted])
    assert (reply.status_code, problem(reply)) == (500, "failed")
    assert json.loads(issuance.log.getvalue())["error"] == "ValueError"
    assert len(issuance.log.getvalue()) < 300
    assert issuance.ask("alice", [wanted]).status_code == 200, "its place is not lost"


def test_nothing_is_signed_that_was_not_recorded(
    issuance: Issuance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bool:
        raise StoreUnavailable("gone")

    wanted = issuance.requests(issuance.slots([0]))
    issuance.ask("alice", wanted)
    monkeypatch.setattr(issuance.store, "change_record", fail)

    for again in (wanted, issuance.requests(issuance.slots([1]))):
        assert problem(issuance.ask("alice", again)) == "unavailable"


def test_random_bytes_never_fail(issuance: Issuance, empty: Empty) -> None:
    """A mutated body is refused or answered, and never an error of ours."""
    randomness = random.Random(7)
    body = json.dumps(
        {
            "fingerprint": issuance.theme.fingerprint,
            "requests": issuance.requests(issuance.slots([0, 1])),
        }
    ).encode()
    headers = issuance.bearer("alice") | {"Content-Type": "application/json"}
    for _ in range(150):
        mutated = bytearray(body)
        for _ in range(randomness.randint(1, 4)):
            mutated[randomness.randrange(len(mutated))] = randomness.randrange(256)
        reply = issuance.web.post("/v1/tokens", data=bytes(mutated), headers=headers)
        assert reply.status_code in {200, 400, 404, 409}, issuance.log.getvalue()


def test_every_request_could_be_for_every_token(issuance: Issuance) -> None:
    """Whoever has both logs learns nothing: for each pair there is a blinding that joins it.

    The planted key of one person alone is another matter: under it, no other pair is possible.
    """
    slots = [each for person in range(3) for each in issuance.slots([0], person)]
    requests = [decode(each["blinded"]) for each in issuance.requests(slots)]
    tokens = [issuance.tokens(f"account {n}", [slot])[0] for n, slot in enumerate(slots)]
    key, (lone,) = issuance.keys(issuance.theme)[0], make_keys(1)[0]

    def possible(blinded: bytes, token: bytes, under: PublicKey) -> bool:
        """Whether a blinding r makes a blinded message of a token's: r = s(blinded) / token."""
        n, number = under.n, int.from_bytes(token, "big")
        encoded = pow(number, under.e, n)
        signer = issuance.issuer._keys[issuance.theme.fingerprint].find(0)
        assert signer is not None
        r = int.from_bytes(signer.sign(blinded), "big") * pow(number, -1, n) % n
        return encoded * pow(r, under.e, n) % n == int.from_bytes(blinded, "big")

    pairs = [(blinded, token) for blinded in requests for token in tokens]
    assert all(possible(*pair, key) for pair in pairs)
    assert not any(possible(*pair, parse_key(lone)) for pair in pairs)
