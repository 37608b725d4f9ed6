"""A running server's address, and how it is asked: as devices and strangers ask, or with a key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import requests

from ..errors import SettingsError
from ..url_check import EXAMPLE, why_not

SECONDS = 10.0
OK, REDIRECT, UNAUTHORIZED, NOT_READY = 200, 300, 401, 503
PROXY = "look at the proxy in front"


@dataclass(frozen=True)
class Served:
    """An address, what it answered first, and a key if one was given."""

    url: str
    key: str = field(repr=False)
    clock: Callable[[], datetime]

    def __post_init__(self) -> None:
        """Refuse what is no address, and to send a key in clear."""
        if not _is_address(self.url):
            raise SettingsError("--url", self.url, EXAMPLE)
        if self.key and (why := why_not(self.url)):
            raise SettingsError("--url", self.url, why)

    @property
    def secure(self) -> bool:
        """Whether it is behind TLS."""
        return urlsplit(self.url).scheme == "https"

    def ask(
        self, method: str, path: str, *, keyed: bool = False, **given: Any
    ) -> requests.Response:
        """Return what one door answers; a redirect is an answer too."""
        return requests.request(
            method,
            self.url.rstrip("/") + path,
            timeout=SECONDS,
            auth=self._show_key if keyed else _show_nothing,  # whatever a .netrc may hold
            allow_redirects=False,
            **given,
        )

    def _show_key(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self.key}"
        return request


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # what stands where a port should
        return False


def _show_nothing(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request
