"""A running server as seen from outside: without a key, or with an API key."""

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
    """The address of a server, an optional API key, and this machine's clock."""

    url: str
    key: str = field(repr=False)
    clock: Callable[[], datetime]

    def __post_init__(self) -> None:
        """Reject an invalid address, and sending a key unencrypted."""
        problem = key_url_problem(self.url) if self.key else url_problem(self.url)
        if problem:
            raise SettingsError("--url", self.url, problem)

    @property
    def secure(self) -> bool:
        """Whether it uses TLS."""
        return urlsplit(self.url).scheme == "https"

    def request(
        self, method: str, path: str, *, with_key: bool = False, **arguments: Any
    ) -> requests.Response:
        """Return the response of one endpoint, on a new connection."""
        with AggregatorClient(self.url, self.key, SECONDS) as client:
            return client.request(method, path, with_key=with_key, **arguments)
