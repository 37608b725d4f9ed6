"""Who may open the pages by an identity of their organization: its groups, and the roles of these.

One file says it. An identity comes from an OpenID provider (`web/dashboard/open_id`) or from a
proxy that has checked it and names it in headers. No address of a peer is to be had behind the
front, so a proxy shows a secret: a stranger who reaches the port can send any header.
"""

from __future__ import annotations

import hmac
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from veilcount_serving.errors import SettingsError
from veilcount_serving.owner_files import read_owner_only
from veilcount_shared.errors import VeilcountError
from veilcount_shared.installing import install

from .records.api_keys import Role
from .records.sessions import PERSON

USER, GROUPS = "X-Veilcount-User", "X-Veilcount-Groups"
PROXY_SECRET = "X-Veilcount-Proxy-Secret"  # noqa: S105 - the header's name
MOST_NAME = 400  # a provider's subject alone may have 255
LEAST_SECRET = 16  # bytes
LOCAL = ("localhost", "127.0.0.1", "::1")
OPTION = "--sign-in"


class SignInRefused(VeilcountError):
    """An identity that may not open the pages, or none that could be verified: what to do."""


@dataclass(frozen=True, slots=True)
class SignInIdentity:
    """A person of the organization: their name, role, and the apps they may read; none: all."""

    name: str
    role: Role
    apps: tuple[str, ...]

    @property
    def actor(self) -> str:
        """How the audit log names them."""
        return PERSON + self.name


class OpenIdSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The provider of identities, and this server as its client."""

    issuer: str
    client: str
    secret_file: str
    address: str  # of this server, as browsers reach it
    claim: str = "groups"


class ProxySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The proxy that names identities."""

    secret_file: str


class SignInFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file as it is written."""

    roles: dict[Role, tuple[str, ...]]
    apps: dict[str, tuple[str, ...]] = {}
    openid: OpenIdSettings | None = None
    proxy: ProxySettings | None = None


@dataclass(frozen=True, slots=True)
class SignIn:
    """The file with the secrets that it names."""

    file: SignInFile
    openid_secret: str
    proxy_secret: str

    def identity(self, name: str, groups: Iterable[str]) -> SignInIdentity:
        """Return the identity of a person in these groups; the highest of several roles."""
        members, roles = {*groups}, self.file.roles
        if not name or len(name) > MOST_NAME or not name.isprintable():
            raise SignInRefused(f"your name is empty, longer than {MOST_NAME}, or not printable")
        for role in (Role.ADMIN, Role.ANALYST):
            if matching := members & {*roles.get(role, ())}:
                return SignInIdentity(name, role, self._apps_of(matching))
        listed = ", ".join(sorted({group for groups in roles.values() for group in groups}))
        raise SignInRefused(f"your account is in none of the groups that may sign in: {listed}")

    def _apps_of(self, groups: Iterable[str]) -> tuple[str, ...]:
        """Return the apps of groups together: all, if one of them is not restricted."""
        restricted = [self.file.apps.get(group, ()) for group in groups]
        return tuple(sorted({*sum(restricted, ())})) if all(restricted) else ()

    def proxied(
        self, headers: Mapping[str, str], repeated: Container[str] = ()
    ) -> SignInIdentity | None:
        """Return the identity that the proxy names; None: it names none.

        One that adds its headers to those of a client instead of replacing them names two.
        """
        name, groups = (_text(headers.get(header, "")) for header in (USER, GROUPS))
        if self.file.proxy is None or not (name or groups):
            return None
        if any(header.lower() in repeated for header in (USER, GROUPS, PROXY_SECRET)):
            raise SignInRefused("a header names you twice: the proxy has to replace a client's")
        shown = headers.get(PROXY_SECRET, "")
        if not hmac.compare_digest(shown.encode(), self.proxy_secret.encode()):
            why = f"you were named without the proxy's secret, which it sends as {PROXY_SECRET}"
            raise SignInRefused(why)
        return self.identity(name, filter(None, map(str.strip, groups.split(","))))


def _text(header: str) -> str:
    """Return a header's text, which a proxy sends as UTF-8 and WSGI reads as Latin-1."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeError:
        return header


@lru_cache(maxsize=1)
def sign_in_at_start(path: Path) -> SignIn:
    """Return the file as this server started with it, also to a worker that is forked later.

    One that read a half changed file could not open, and would take no reports either.
    """
    return read_sign_in(path)


def read_sign_in(path: Path) -> SignIn:
    """Read the file, and the secrets that it names; SettingsError names what is wrong."""
    try:
        file = msgspec.toml.decode(path.read_bytes(), type=SignInFile)
    except OSError as error:
        raise _unreadable(OPTION, path, error) from error
    except (ValueError, msgspec.MsgspecError) as error:
        raise SettingsError(OPTION, str(path), f"correct the file: {error}") from error
    for name, value, fix in _problems(file):
        raise SettingsError(f"{path.name}: {name}", value, fix)
    if file.openid and not find_spec("authlib"):
        raise SettingsError(f"{path.name}: openid", file.openid.issuer, install("oidc"))
    openid, proxy = (
        _read_secret(path.parent / table.secret_file) if table else ""
        for table in (file.openid, file.proxy)
    )
    return SignIn(file, openid, proxy)


def _read_secret(path: Path) -> str:
    try:
        secret = read_owner_only(path).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable("secret_file", path, error) from error
    if len(secret) < LEAST_SECRET:
        fix = f"give a secret of {LEAST_SECRET} characters or more, of `openssl rand -hex 32`"
        raise SettingsError("secret_file", str(path), fix)
    return secret


def _unreadable(name: str, path: Path, error: Exception) -> SettingsError:
    return SettingsError(name, str(path), f"give a file that can be read: {error}")


def _problems(file: SignInFile) -> Iterator[tuple[str, str, str]]:
    """Yield each field that cannot be as it is, its value and the fix."""
    if file.openid is None and file.proxy is None:
        yield "openid", "", "give a table [openid] or [proxy]: where identities come from"
    if not any(file.roles.values()):
        yield "roles", "", 'give the groups of a role: admin = ["platform"]'
    for role in {*file.roles} - {Role.ADMIN, Role.ANALYST}:
        yield "roles", role, "give groups of admin and analyst only"
    for group, apps in file.apps.items():
        if group not in file.roles.get(Role.ANALYST, ()):
            yield "apps", group, "give a group of analysts: admins read every app"
        if not apps:
            yield f"apps.{group}", "", "name an app, or leave the group out: it reads all"
    if file.openid is not None:
        for name, url in (("issuer", file.openid.issuer), ("address", file.openid.address)):
            if not _is_secure(url):
                yield f"openid.{name}", url, "give an https:// URL without query and fragment"


def _is_secure(url: str) -> bool:
    """Whether a URL is one of https, or of this machine."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    schemes = ("http", "https") if parts.hostname in LOCAL else ("https",)
    extra = parts.query or parts.fragment or parts.username
    return bool(parts.hostname) and parts.scheme in schemes and not extra
