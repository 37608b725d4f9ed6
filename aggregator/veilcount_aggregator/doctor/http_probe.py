"""A running server as seen from outside: by devices, by strangers, or with an API key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import requests

from ..errors import SettingsError
from ..http_client import AggregatorClient, key_url_problem, url_problem

SECONDS = 10.0
OK, REDIRECT, UNAUTHORIZED, NOT_READY = 200, 300, 401, 503
PROXY = "check the reverse proxy"


@dataclass(frozen=True)
class ServerProbe:
    """An address, an API key if one was given, and this machine's clock."""

    url: str
    key: str = field(repr=False)
    clock: Callable[[], datetime]

    def __post_init__(self) -> None:
        """Reject what is no address, and sending a key in clear."""
        problem = key_url_problem(self.url) if self.key else url_problem(self.url)
        if problem:
            raise SettingsError("--url", self.url, problem)

    @property
    def secure(self) -> bool:
        """Whether it is behind TLS."""
        return urlsplit(self.url).scheme == "https"

    def request(
        self, method: str, path: str, *, with_key: bool = False, **arguments: Any
    ) -> requests.Response:
        """Return the response of one endpoint, on a connection of its own."""
        with AggregatorClient(self.url, self.key, SECONDS) as client:
            return client.request(method, path, with_key=with_key, **arguments)
