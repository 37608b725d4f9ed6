"""Log-in by an OpenID provider: authorization code with PKCE, state and nonce [OIDC Core, 3.1].

What a browser was sent away with returns in a cookie of its own, for ten minutes: `Lax`, since the
provider's redirect comes from another site, which the session's `Strict` cookie would not. Only
what was begun in the same browser can be finished in it.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

import requests

from veilcount_shared.errors import VeilcountError

from ...sign_in import OpenIdSettings, SignIn, SignInIdentity, SignInRefused

RETURN_PATH = "/sign-in/return"
COOKIE_SECONDS = 600
SECONDS = 5.0  # for each response of the provider
LEEWAY = 60  # seconds that clocks may differ by
MOST_AT_ONCE = 4  # threads that wait for the provider
#: an asymmetric signature: under any other, who knows a public value could sign
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA", "Ed25519"]
NAMES = ("preferred_username", "email")  # that people choose, and may give to another


class ProviderFailed(VeilcountError):
    """The provider did not answer, or not as it must: what happened."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One log-in that was begun, as the browser's cookie keeps it."""

    state: str
    nonce: str
    verifier: str
    to: str

    @classmethod
    def begin(cls, to: str) -> Attempt:
        """Draw what only this log-in can be finished with."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        return cls(state, nonce, verifier, to)

    def encode(self) -> str:
        """Return the cookie's value."""
        return base64.urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode()

    @classmethod
    def decode(cls, cookie: str) -> Attempt:
        """Parse a cookie; SignInRefused if there is none, or another."""
        with suppress(ValueError, TypeError, RecursionError):
            attempt = cls(**json.loads(base64.urlsafe_b64decode(cookie.encode())))
            fields = asdict(attempt).values()
            if all(isinstance(field, str) and field.isprintable() for field in fields):
                return attempt
        raise SignInRefused("no log-in was begun in this browser in the last ten minutes")


class OpenIdProvider:
    """The provider, as this worker knows it: its metadata and keys are asked for once."""

    def __init__(self, sign_in: SignIn, settings: OpenIdSettings) -> None:
        self._sign_in, self._settings = sign_in, settings
        self._free = threading.BoundedSemaphore(MOST_AT_ONCE)
        self._metadata: Mapping[str, Any] = {}
        self._keys: Any = None  # a key set

    def check(self) -> None:
        """Fetch the addresses and keys that a first log-in needs, or raise ProviderFailed."""
        with self._exchange():
            for name in ("authorization_endpoint", "token_endpoint"):
                self._endpoint(name)
            self._new_keys()

    def address(self, attempt: Attempt) -> str:
        """Return where the browser goes to log in."""
        with self._exchange():
            url, _ = self._session().create_authorization_url(
                self._endpoint("authorization_endpoint"),
                state=attempt.state,
                nonce=attempt.nonce,
                code_verifier=attempt.verifier,
            )
        return str(url)

    def identity(self, attempt: Attempt, answer: Mapping[str, str]) -> SignInIdentity:
        """Return whom the provider has logged in, once it confirms what the browser brings."""
        if not hmac.compare_digest(answer.get("state", "").encode(), attempt.state.encode()):
            raise SignInRefused("this answer is to another log-in than the one begun here")
        if answer.get("iss", self._settings.issuer) != self._settings.issuer:  # [RFC 9207]
            raise SignInRefused("this answer is of another provider")
        if "code" not in answer:
            raise SignInRefused("the provider has not logged you in")
        with self._exchange():
            token = self._session().fetch_token(
                self._endpoint("token_endpoint"),
                grant_type="authorization_code",
                code=answer["code"],
                code_verifier=attempt.verifier,
                timeout=SECONDS,
                allow_redirects=False,  # the code and the secret are for this endpoint
            )
            claims = self._claims(str(token["id_token"]), attempt.nonce)
        return self._sign_in.identity(_name(claims), self._groups(claims))

    @contextmanager
    def _exchange(self) -> Iterator[None]:
        """Ask the provider, with few others at once; ProviderFailed says what went wrong."""
        from authlib.common.errors import AuthlibBaseError  # noqa: PLC0415 - an extra's
        from joserfc.errors import JoseError  # noqa: PLC0415 - likewise

        if not self._free.acquire(blocking=False):
            raise SignInRefused("too many people log in at this moment: retry")
        try:
            yield
        except (requests.RequestException, AuthlibBaseError, JoseError) as error:
            raise ProviderFailed(f"{type(error).__name__}: {error}") from error
        except (KeyError, TypeError, ValueError) as error:
            raise ProviderFailed(f"its answer is none of OpenID: {error}") from error
        finally:
            self._free.release()

    def _session(self) -> Any:
        from authlib.integrations.requests_client import OAuth2Session  # noqa: PLC0415 - an extra's

        return OAuth2Session(
            self._settings.client,
            self._sign_in.openid_secret,
            scope="openid profile email",
            redirect_uri=self._settings.address.rstrip("/") + RETURN_PATH,
            code_challenge_method="S256",
        )

    def _endpoint(self, name: str) -> str:
        if not self._metadata:
            issuer = self._settings.issuer
            metadata = _get(issuer.rstrip("/") + "/.well-known/openid-configuration")
            if metadata["issuer"] != issuer:
                raise ProviderFailed(f"it calls itself {metadata['issuer']}: correct openid.issuer")
            self._metadata = metadata
        return str(self._metadata[name])

    def _claims(self, token: str, nonce: str) -> Mapping[str, Any]:
        """Return the claims of an id token that is the provider's, for this client and log-in."""
        from joserfc import jwt  # noqa: PLC0415 - an extra's
        from joserfc.errors import InvalidKeyIdError  # noqa: PLC0415 - likewise

        try:
            read = jwt.decode(token, self._keys or self._new_keys(), algorithms=ALGORITHMS)
        except InvalidKeyIdError:  # it has a new key
            read = jwt.decode(token, self._new_keys(), algorithms=ALGORITHMS)
        jwt.JWTClaimsRegistry(
            leeway=LEEWAY,
            iss={"essential": True, "value": self._settings.issuer},
            aud={"essential": True, "value": self._settings.client},
            exp={"essential": True},
            sub={"essential": True},
            azp={"value": self._settings.client},
            nonce={"essential": True, "value": nonce},
        ).validate(read.claims)
        return read.claims

    def _new_keys(self) -> Any:
        from joserfc.jwk import KeySet  # noqa: PLC0415 - an extra's

        self._keys = KeySet.import_key_set(_get(self._endpoint("jwks_uri")))
        return self._keys

    def _groups(self, claims: Mapping[str, Any]) -> list[str]:
        groups = claims.get(self._settings.claim, [])
        if isinstance(groups, list) and all(isinstance(group, str) for group in groups):
            return groups
        raise ProviderFailed(f"the claim {self._settings.claim} is no list of groups")


def _name(claims: Mapping[str, Any]) -> str:
    """Return how a person is called, and the subject, which is theirs alone [OIDC Core, 5.7]."""
    subject = str(claims["sub"])
    called = next((f"{claims[name]} " for name in NAMES if claims.get(name)), "")
    return f"{called}({subject})" if called else subject


def _get(url: str) -> Any:
    response = requests.get(url, timeout=SECONDS, allow_redirects=False)
    response.raise_for_status()
    read = response.json()
    if not isinstance(read, dict):
        raise TypeError("no object")
    return read
