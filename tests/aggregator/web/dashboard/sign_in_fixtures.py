"""Log-in by an identity of the organization: a provider of ours, and files of settings.

The provider signs whatever a test makes of an id token, as no honest one would.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from flask import Flask, redirect, request
from flask.typing import ResponseReturnValue
from joserfc import jwt
from joserfc.jwk import RSAKey
from werkzeug.serving import make_server

from veilcount_aggregator.sign_in import GROUPS, PROXY_SECRET, USER

from ..api.deployment_fixtures import Deployment
from .page_fixtures import Page, Visitor

SECRET = "a secret of more than sixteen characters"
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
    moved_to: str = ""  # where its token endpoint sends who asks, if anywhere

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
        made.add_url_rule("/token", "token", self._token_or_move, methods=["POST"])
        made.add_url_rule("/moved", "moved", self._token, methods=["POST"])
        return made

    def confirm(self, address: str) -> dict[str, str]:
        """Return what the browser of somebody who has logged in brings back."""
        attempt = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        code = secrets.token_urlsafe()
        self.begun[code] = attempt
        return {"code": code, "state": attempt["state"]}

    def _token_or_move(self) -> ResponseReturnValue:
        return redirect(self.moved_to, 307) if self.moved_to else self._token()

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
        claims = {name: value for name, value in claims.items() if value is not None}
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


def file(folder: Path, *parts: str) -> Path:
    (folder / "secret").write_text(SECRET + "\n")
    (folder / "secret").chmod(0o600)
    path = folder / "sign-in.toml"
    path.write_text("".join(parts))
    return path


def returned(visitor: Visitor, answer: Mapping[str, str]) -> Page:
    return visitor.get(f"/sign-in/return?{urlencode(answer)}")


def signed_in(visitor: Visitor, provider: Provider, to: str = "/") -> Page:
    away = visitor.get(f"/sign-in?{urlencode({'to': to})}")
    return returned(visitor, provider.confirm(away.leads_to))


def named(made: Deployment, groups: str, secret: str = SECRET, name: str = "bob") -> Visitor:
    return Visitor(made, {USER: name, GROUPS: groups, PROXY_SECRET: secret})
