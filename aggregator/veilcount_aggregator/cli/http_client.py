"""A running server, asked over HTTP with a key; what goes wrong says what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import click
import requests

from ..errors import SettingsError, StoreUnavailable
from ..settings import PREFIX
from ..url_check import why_not
from .main import NotSo

SECONDS = 60.0
UNAUTHORIZED, CONFLICT, AWAY = 401, 409, 500

Parameters = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Server:
    """Where it is, and the key to show."""

    url: str
    key: str = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse what is no address, and to ask without a key."""
        if why := why_not(self.url):
            raise SettingsError("--url", self.url, why)
        if not self.key:
            raise SettingsError("--key", "", f"give an analyst's key, here or as {PREFIX}KEY")

    def ask(self, name: str, what: str, given: Parameters) -> dict[str, Any]:
        """Return what a collection's door answers."""
        return self.send("GET", _path(name, what), params=dict(given))

    def order(self, name: str, what: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Return what comes of a request that changes something."""
        return self.send("POST", _path(name, what), json=dict(body))

    def send(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        """Return what any door answers."""
        try:
            reply = requests.request(
                method,
                self.url.rstrip("/") + path,
                timeout=SECONDS,
                auth=self._authorize,  # given always, so that no .netrc takes its place
                allow_redirects=False,  # a key goes where it was meant to go
                **given,
            )
            said = reply.json()
        except requests.JSONDecodeError as error:
            raise StoreUnavailable(f"{self.url} answers, but is no aggregator") from error
        except requests.RequestException as error:
            raise StoreUnavailable(
                f"no aggregator answers at {self.url} ({type(error).__name__}): is the address"
                " right, and is `veilcount serve` running?"
            ) from error
        if reply.ok and isinstance(said, dict):
            return said
        raise _refused(reply.status_code, said if isinstance(said, dict) else {})

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self.key}"
        return request


def _path(name: str, what: str) -> str:
    return f"/v1/collections/{quote(name, safe='')}/{what}"


def _refused(status: int, said: Mapping[str, Any]) -> Exception:
    why = str(said.get("detail") or said.get("title") or f"HTTP {status}")
    if status >= AWAY:
        return StoreUnavailable(why)
    if status == CONFLICT:
        return NotSo(why)
    if status == UNAUTHORIZED:
        why = f"{why}: `veilcount keys create --role analyst` makes a key"
    return click.ClickException(why)
