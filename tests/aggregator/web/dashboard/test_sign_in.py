"""Log-in by an identity of the organization, of a provider over HTTP or of a proxy's headers.

One provider is another's implementation, the other one ours: it signs whatever a test makes of an
id token, as no honest one would.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from flask import Flask, request
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from werkzeug.serving import make_server

from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.records.audit_log import load_audit_log
from veilcount_aggregator.records.sessions import SIGNED_IN_LASTS
from veilcount_aggregator.sign_in import GROUPS, PROXY_SECRET, USER, SignInRefused, read_sign_in
from veilcount_aggregator.web.dashboard.open_id import MOST_AT_ONCE, Attempt
from veilcount_serving.errors import SettingsError

from ....tree.import_graph import ROOT
from ..api.deployment_fixtures import FILE, Deployment, deployment
from .page_fixtures import Page, Visitor

SECRET = "a secret of more than sixteen characters"
HERE = "http://localhost"
OPERATING = ROOT / "docs" / "operating.md"
ROLES = """
[roles]
admin = ["platform"]
analyst = ["data", "growth"]

[apps]
growth = ["acme-editor"]
"""
OPENID = """
[openid]
issuer = "{issuer}"
client = "veilcount"
secret_file = "secret"
address = "http://localhost"
"""
PROXY = '[proxy]\nsecret_file = "secret"\n'
Claims = dict[str, Any]


@dataclass
class Provider:
    """A provider that confirms one log-in after the other, and signs what a test makes of each."""

    issuer: str = ""
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "1"}))
    groups: list[str] = field(default_factory=lambda: ["data"])
    change: Callable[[Claims], object] = lambda _: None
    sign: Callable[[Claims, RSAKey], str] = lambda claims, key: jwt.encode(
        {"alg": "RS256", "kid": key.kid}, claims, key
    )
    begun: dict[str, Mapping[str, str]] = field(default_factory=dict)  # by code

    def app(self) -> Flask:
        made = Flask("provider")
        made.add_url_rule(
            "/.well-known/openid-configuration",
            "metadata",
            lambda: {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
            },
        )
        made.add_url_rule("/keys", "keys", lambda: {"keys": [self.key.as_dict(private=False)]})
        made.add_url_rule("/token", "token", self._token, methods=["POST"])
        return made

    def confirm(self, address: str) -> dict[str, str]:
        """Return what the browser of somebody who has logged in brings back."""
        attempt = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        code = secrets.token_urlsafe()
        self.begun[code] = attempt
        return {"code": code, "state": attempt["state"]}

    def _token(self) -> tuple[dict[str, object], int]:
        """Answer as OAuth 2 says: each code once, to this client, with the challenge's answer."""
        attempt = self.begun.pop(request.form["code"], None)
        digest = hashlib.sha256(request.form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        client = request.authorization and dict(request.authorization.parameters)
        known = client == {"username": "veilcount", "password": SECRET}
        if attempt is None or attempt["code_challenge"] != challenge or not known:
            return {"error": "invalid_grant"}, 400
        claims: Claims = {
            "iss": self.issuer,
            "aud": attempt["client_id"],
            "sub": "1",
            "preferred_username": "alice",
            "groups": self.groups,
            "exp": int(time.time()) + 300,
            "nonce": attempt["nonce"],
        }
        self.change(claims)
        token = self.sign(claims, self.key)
        return {"access_token": "x", "token_type": "Bearer", "id_token": token}, 200


@contextmanager
def served(app: Flask) -> Iterator[str]:
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    with served(made.app()) as made.issuer:
        yield made


def file(folder: Path, *parts: str) -> Path:
    (folder / "secret").write_text(SECRET + "\n")
    (folder / "secret").chmod(0o600)
    path = folder / "sign-in.toml"
    path.write_text("".join(parts))
    return path


@pytest.fixture
def deployed(tmp_path: Path, provider: Provider) -> Iterator[Deployment]:
    text = OPENID.format(issuer=provider.issuer)
    with deployment(tmp_path, FILE, sign_in=file(tmp_path, ROLES, text)) as made:
        yield made


def returned(visitor: Visitor, answer: Mapping[str, str]) -> Page:
    return visitor.get(f"/sign-in/return?{urlencode(answer)}")


def signed_in(visitor: Visitor, provider: Provider, to: str = "/") -> Page:
    away = visitor.get(f"/sign-in?{urlencode({'to': to})}")
    return returned(visitor, provider.confirm(away.leads_to))


# -- a provider ------------------------------------------------------------------------------------


def test_who_the_provider_logs_in_has_the_role_of_their_group(
    visitor: Visitor, provider: Provider
) -> None:
    assert "Sign in with your organization" in visitor.get("/login").text
    page = signed_in(visitor, provider, "/operations?page=0")

    assert page.status == 200
    assert 'content="0; url=/operations?page=0"' in page.html
    assert visitor.get("/operations?page=0").status == 200
    assert visitor.get("/keys").status == 403


def test_the_audit_log_names_the_person(
    deployed: Deployment, visitor: Visitor, provider: Provider
) -> None:
    provider.groups = ["platform"]
    signed_in(visitor, provider)
    visitor.get("/keys")
    visitor.post("/keys", role="analyst", label="of alice")

    assert load_audit_log(deployed.aggregator.store)[-1].actor == "person:alice"


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
    """The provider is attempt again then: it knows who has left a group."""
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
}


@pytest.mark.parametrize("claims", WRONG_CLAIMS.values(), ids=WRONG_CLAIMS)
def test_a_token_that_says_something_else_logs_nobody_in(
    visitor: Visitor, provider: Provider, claims: Claims
) -> None:
    provider.change = lambda honest: honest.update(claims)
    page = signed_in(visitor, provider)

    assert page.status == 502
    assert visitor.get("/").leads_to == "/login"


@pytest.mark.parametrize("claim", ["iss", "aud", "exp", "nonce"])
def test_a_token_that_leaves_something_out_logs_nobody_in(
    visitor: Visitor, provider: Provider, claim: str
) -> None:
    provider.change = lambda honest: honest.pop(claim)

    assert signed_in(visitor, provider).status == 502
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


@pytest.mark.parametrize(
    ("groups", "role", "apps"),
    [
        (["data", "platform"], Role.ADMIN, ()),
        (["growth"], Role.ANALYST, ("acme-editor",)),
        (["growth", "data"], Role.ANALYST, ()),
        (["growth", "sales"], Role.ANALYST, ("acme-editor",)),
    ],
)
def test_of_several_groups_the_one_that_may_most_counts(
    tmp_path: Path, groups: list[str], role: Role, apps: tuple[str, ...]
) -> None:
    identity = read_sign_in(file(tmp_path, ROLES, PROXY)).identity("alice", groups)

    assert (identity.role, identity.apps) == (role, apps)


def test_a_provider_of_another_name_logs_nobody_in(visitor: Visitor, provider: Provider) -> None:
    provider.issuer += "/realm"

    page = visitor.get("/sign-in")

    assert (page.status, page.leads_to) == (502, "")
    assert provider.issuer not in page.text  # what happened is in the log alone


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


def test_keys_go_on_to_work_while_the_provider_does_not(
    tmp_path: Path, deployed: Deployment
) -> None:
    with deployment(
        tmp_path, sign_in=file(tmp_path, ROLES, OPENID.format(issuer="http://127.0.0.1:9"))
    ) as made:
        visitor = Visitor(made)
        page = visitor.get("/sign-in")

        assert page.status == 502
        assert "Retry, or use a key" in page.text


# -- a proxy ---------------------------------------------------------------------------------------


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(tmp_path, FILE, sign_in=file(tmp_path, ROLES, PROXY)) as made:
        yield made


def named(made: Deployment, groups: str, secret: str = SECRET, name: str = "bob") -> Visitor:
    return Visitor(made, {USER: name, GROUPS: groups, PROXY_SECRET: secret})


def test_a_proxy_that_shows_its_secret_names_who_is_there(proxied: Deployment) -> None:
    admin = named(proxied, "sales, platform")
    admin.get("/keys")
    made = admin.post("/keys", role="analyst", label="by bob")

    assert named(proxied, "data").get("/").status == 200
    assert named(proxied, "data").get("/keys").status == 403
    assert made.status == 201
    assert load_audit_log(proxied.aggregator.store)[-1].actor == "person:bob"


@pytest.mark.parametrize("secret", ["", "another secret of that length, or so", SECRET + "x"])
def test_who_sends_the_headers_without_the_secret_opens_nothing(
    proxied: Deployment, secret: str
) -> None:
    page = named(proxied, "platform", secret).get("/keys")

    assert page.status == 403
    assert PROXY_SECRET in page.text


def test_headers_say_nothing_to_a_server_without_a_proxy(deployed: Deployment) -> None:
    assert named(deployed, "platform").get("/keys").leads_to == "/login?to=%2Fkeys"


def test_each_request_is_judged_by_itself(proxied: Deployment) -> None:
    """Whom the proxy names no more, or in another group, has what it says now."""
    visitor = named(proxied, "platform")
    assert visitor.get("/keys").status == 200
    visitor.headers[GROUPS] = "data"
    assert visitor.get("/keys").status == 403
    visitor.headers.clear()
    assert visitor.get("/keys").leads_to == "/login?to=%2Fkeys"


def test_a_form_of_another_site_changes_nothing(proxied: Deployment) -> None:
    """The proxy adds its headers to that request, too."""
    visitor = named(proxied, "platform")
    visitor.get("/keys")
    visitor.token = "0" * 64

    assert visitor.post("/keys", role="admin", label="of a stranger").status == 400


@pytest.mark.parametrize(
    "made_up",
    [b"", b"{}", b"[]", b"?", b"[" * 5_000, b'{"state": 1, "nonce": "", "verifier": "", "to": ""}'],
)
def test_a_made_up_cookie_begins_no_log_in(made_up: bytes) -> None:
    lone = b'{"state": "\\ud800", "nonce": "", "verifier": "", "to": "/"}'
    for cookie in (made_up, lone):
        with pytest.raises(SignInRefused):
            Attempt.decode(base64.urlsafe_b64encode(cookie).decode())


def test_a_name_may_have_any_letters(proxied: Deployment) -> None:
    """A proxy sends UTF-8, which WSGI reads as Latin-1."""
    visitor = named(proxied, "platform", name="Łukasz".encode().decode("latin-1"))
    visitor.get("/keys")
    visitor.post("/keys", role="analyst", label="his")

    assert load_audit_log(proxied.aggregator.store)[-1].actor == "person:Łukasz"


def test_whom_a_proxy_names_in_no_group_may_use_a_key(proxied: Deployment) -> None:
    assert named(proxied, "sales").get("/login").status == 200
    assert named(proxied, "sales").get("/").status == 403


@pytest.mark.parametrize("name", ["", "x" * 101, "a\tb"])
def test_a_name_that_no_log_can_show_is_refused(proxied: Deployment, name: str) -> None:
    assert named(proxied, "platform", name=name).get("/").status == 403


# -- the file --------------------------------------------------------------------------------------

WRONG_FILES = {
    "nothing": ("", "roles"),
    "no source": (ROLES, r"give a table \[openid\] or \[proxy\]"),
    "no roles": (f"[roles]\n{PROXY}", "give the groups of a role"),
    "a device": (f'[roles]\ndevice = ["a"]\nanalyst = ["b"]\n{PROXY}', "admin and analyst only"),
    "unknown role": (f'[roles]\nboss = ["a"]\n{PROXY}', "boss"),
    "one group": (f'[roles]\nadmin = "a"\n{PROXY}', "array"),
    "apps of admins": (f'[roles]\nadmin = ["a"]\n[apps]\na = ["x"]\n{PROXY}', "admins read every"),
    "no apps": (f'[roles]\nanalyst = ["a"]\n[apps]\na = []\n{PROXY}', "name an app"),
    "in the clear": (ROLES + OPENID.format(issuer="http://id.example.org"), "https://"),
    "a misspelled key": (ROLES + '[proxy]\nsecret = "x"\n', "secret"),
    "no TOML": ("[roles", "correct the file"),
    "no secret": (ROLES + '[proxy]\nsecret_file = "missing"\n', "can be read"),
    "a short secret": (ROLES + '[proxy]\nsecret_file = "short"\n', "16 characters"),
    "a shared secret": (ROLES + '[proxy]\nsecret_file = "shared"\n', "chmod 600"),
}


@pytest.mark.parametrize(("text", "message"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    for name, secret, mode in (("short", "x", 0o600), ("shared", SECRET, 0o644)):
        (tmp_path / name).write_text(secret)
        (tmp_path / name).chmod(mode)

    with pytest.raises(SettingsError, match=message):
        read_sign_in(file(tmp_path, text))


def test_the_documented_file_is_one(tmp_path: Path) -> None:
    """With secrets of the names that it has."""
    for name in ("openid-secret", "proxy-secret"):
        (tmp_path / name).write_text(SECRET)
        (tmp_path / name).chmod(0o600)
    text = OPERATING.read_text(encoding="utf-8").partition("<!-- file: sign-in.toml -->\n```toml")[
        2
    ]

    assert read_sign_in(file(tmp_path, text.partition("```")[0])).file.apps == {"growth": ("shop",)}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"missing\.toml"):
        read_sign_in(tmp_path / "missing.toml")
