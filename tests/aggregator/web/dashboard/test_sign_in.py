"""Log-in by an identity provider over OpenID Connect."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from veilcount_aggregator.records.audit_log import load_audit_log
from veilcount_aggregator.records.sessions import SIGNED_IN_LASTS
from veilcount_aggregator.sign_in import SignInRefused
from veilcount_aggregator.web.dashboard.open_id import MOST_AT_ONCE, Attempt

from ..api.deployment_fixtures import FILE, Deployment, deployment
from .page_fixtures import Visitor
from .sign_in_fixtures import (
    OPENID,
    ROLES,
    Claims,
    Provider,
    file,
    named,
    returned,
    served,
    signed_in,
)


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    with served(made.app()) as made.issuer:
        yield made


@pytest.fixture
def deployed(tmp_path: Path, provider: Provider) -> Iterator[Deployment]:
    text = OPENID.format(issuer=provider.issuer)
    with deployment(tmp_path, FILE, sign_in=file(tmp_path, ROLES, text)) as made:
        yield made


def test_who_the_provider_logs_in_has_the_role_of_their_group(
    visitor: Visitor, provider: Provider
) -> None:
    assert "Sign in with your organization" in visitor.get("/login").text
    page = signed_in(visitor, provider, "/operations?page=0")

    assert page.status == 200
    assert 'content="0; url=/operations?page=0"' in page.html
    assert visitor.get("/operations?page=0").status == 200
    assert visitor.get("/keys").status == 403


@pytest.mark.parametrize(
    ("claims", "actor"),
    [
        ({}, "person:alice (1)"),
        ({"sub": "2"}, "person:alice (2)"),  # who takes another person's name
        ({"preferred_username": None}, "person:1"),
        ({"preferred_username": "", "email": "alice@example.org"}, "person:alice@example.org (1)"),
    ],
)
def test_the_audit_log_names_the_person_and_the_subject(
    deployed: Deployment, visitor: Visitor, provider: Provider, claims: Claims, actor: str
) -> None:
    provider.groups = ["platform"]
    provider.change = lambda honest: honest.update(claims)
    signed_in(visitor, provider)
    visitor.get("/keys")
    visitor.post("/keys", role="analyst", label="of alice")

    assert load_audit_log(deployed.aggregator.store)[-1].actor == actor


def test_a_restricted_group_reads_its_apps_only(
    deployed: Deployment, visitor: Visitor, provider: Provider
) -> None:
    deployed.push(FILE.replace("acme-editor", "other").replace("[theme]", "[secret]"))
    provider.groups = ["growth"]
    signed_in(visitor, provider)

    assert visitor.get("/collections/theme").status == 200
    assert visitor.get("/collections/secret").status == 404


def test_a_session_ends_within_the_hour(
    deployed: Deployment, visitor: Visitor, provider: Provider
) -> None:
    """The provider says it anew then, and knows who has left a group."""
    signed_in(visitor, provider)
    deployed.clocks.now += SIGNED_IN_LASTS - timedelta(seconds=1)
    assert visitor.get("/").status == 200
    deployed.clocks.now += timedelta(seconds=1)

    assert visitor.get("/").leads_to == "/login"


def resigned(claims: Claims, key: RSAKey) -> str:
    stranger = RSAKey.generate_key(2048, {"kid": "1"})
    return jwt.encode({"alg": "RS256", "kid": "1"}, claims, stranger)


def unsigned(claims: Claims, _: RSAKey) -> str:
    parts = ({"alg": "none"}, claims)
    head, body = (base64.urlsafe_b64encode(json.dumps(p).encode()).decode() for p in parts)
    return f"{head.rstrip('=')}.{body.rstrip('=')}."


def signed_by_what_is_public(claims: Claims, key: RSAKey) -> str:
    secret = OctKey.import_key(key.as_pem(private=False))
    return jwt.encode({"alg": "HS256", "kid": key.kid}, claims, secret)


WRONG_CLAIMS: dict[str, Claims] = {
    "issuer": {"iss": "https://elsewhere.example"},
    "audience": {"aud": "another-client"},
    "party": {"aud": ["veilcount", "another"], "azp": "another"},
    "nonce": {"nonce": "of another log-in"},
    "expired": {"exp": int(time.time()) - 3600},
    "groups": {"groups": "data"},
    **{f"no {claim}": {claim: None} for claim in ("iss", "aud", "exp", "sub", "nonce")},
}


@pytest.mark.parametrize("claims", WRONG_CLAIMS.values(), ids=WRONG_CLAIMS)
def test_a_token_that_says_something_else_or_leaves_it_out_logs_nobody_in(
    visitor: Visitor, provider: Provider, claims: Claims
) -> None:
    provider.change = lambda honest: honest.update(claims)
    page = signed_in(visitor, provider)

    assert page.status == 502
    assert visitor.get("/").leads_to == "/login"


@pytest.mark.parametrize("sign", [resigned, unsigned, signed_by_what_is_public])
def test_a_token_of_another_key_logs_nobody_in(
    visitor: Visitor, provider: Provider, sign: Callable[[Claims, RSAKey], str]
) -> None:
    provider.sign = sign

    assert signed_in(visitor, provider).status == 502
    assert visitor.get("/").leads_to == "/login"


def test_a_provider_that_changes_its_key_goes_on(visitor: Visitor, provider: Provider) -> None:
    signed_in(visitor, provider)
    provider.key = RSAKey.generate_key(2048, {"kid": "2"})

    assert signed_in(visitor, provider).status == 200


def test_an_answer_counts_once_and_in_the_browser_that_began(
    deployed: Deployment, visitor: Visitor, provider: Provider
) -> None:
    answer = provider.confirm(visitor.get("/sign-in").leads_to)
    stranger, other = Visitor(deployed), Visitor(deployed)
    other.get("/sign-in")

    assert returned(stranger, answer).status == 403
    assert returned(other, answer).status == 403
    assert returned(visitor, answer).status == 200
    assert returned(visitor, answer).status == 403  # its cookie is gone

    began = visitor.get("/sign-in")
    again = provider.confirm(began.leads_to) | {"code": answer["code"]}
    assert returned(visitor, again).status == 502  # the provider takes a code once


def test_an_answer_without_a_code_or_of_another_provider_is_refused(
    visitor: Visitor, provider: Provider
) -> None:
    for change in ({"iss": "https://elsewhere.example"}, {"error": "access_denied"}):
        answer = provider.confirm(visitor.get("/sign-in").leads_to) | change
        if "error" in change:
            del answer["code"]

        assert returned(visitor, answer).status == 403


@pytest.mark.parametrize("to", ["https://else.example/", "//else.example", "/\\else.example"])
def test_it_leads_to_no_other_site(visitor: Visitor, provider: Provider, to: str) -> None:
    assert 'content="0; url=/"' in signed_in(visitor, provider, to).html


def test_a_provider_of_another_name_logs_nobody_in(visitor: Visitor, provider: Provider) -> None:
    provider.issuer += "/realm"

    page = visitor.get("/sign-in")

    assert (page.status, page.leads_to) == (502, "")
    assert provider.issuer not in page.text  # what happened is in the log alone


def test_a_code_and_the_secret_go_to_one_address_only(visitor: Visitor, provider: Provider) -> None:
    provider.moved_to = "/moved"

    assert signed_in(visitor, provider).status == 502
    assert provider.begun  # the code was not used


def test_a_provider_that_hangs_keeps_few_threads(deployed: Deployment, provider: Provider) -> None:
    """The others get an answer at once: a log-in by key, and every page, goes on."""
    hung, goes_on = threading.Semaphore(0), threading.Event()
    browsers = [Visitor(deployed) for _ in range(MOST_AT_ONCE + 1)]
    answers = [provider.confirm(visitor.get("/sign-in").leads_to) for visitor in browsers]

    def hang(_: Claims) -> None:
        hung.release()
        goes_on.wait(60)

    provider.change = hang
    with ThreadPoolExecutor(MOST_AT_ONCE) as threads:
        waiting = [
            threads.submit(returned, *pair)
            for pair in list(zip(browsers, answers, strict=True))[:MOST_AT_ONCE]
        ]
        for _ in waiting:
            hung.acquire()
        refused = returned(browsers[-1], answers[-1])
        goes_on.set()

        assert "too many people log in" in refused.text
        assert [done.result().status for done in waiting] == [200] * MOST_AT_ONCE


def test_a_person_of_no_group_reads_which_groups_may(visitor: Visitor, provider: Provider) -> None:
    provider.groups = ["sales"]
    page = signed_in(visitor, provider)

    assert page.status == 403
    assert "none of the groups that may sign in: data, growth, platform" in page.text
    assert "sales" not in page.text


def test_keys_go_on_to_work_while_the_provider_does_not(tmp_path: Path) -> None:
    with deployment(
        tmp_path, sign_in=file(tmp_path, ROLES, OPENID.format(issuer="http://127.0.0.1:9"))
    ) as made:
        visitor = Visitor(made)
        page = visitor.get("/sign-in")

        assert page.status == 502
        assert "Retry, or use a key" in page.text


def test_headers_say_nothing_to_a_server_without_a_proxy(deployed: Deployment) -> None:
    assert named(deployed, "platform").get("/keys").leads_to == "/login?to=%2Fkeys"


@pytest.mark.parametrize(
    "made_up",
    [b"", b"{}", b"[]", b"?", b"[" * 5_000, b'{"state": 1, "nonce": "", "verifier": "", "to": ""}'],
)
def test_a_made_up_cookie_begins_no_log_in(made_up: bytes) -> None:
    lone = b'{"state": "\\ud800", "nonce": "", "verifier": "", "to": "/"}'
    for cookie in (made_up, lone):
        with pytest.raises(SignInRefused):
            Attempt.decode(base64.urlsafe_b64encode(cookie).decode())
