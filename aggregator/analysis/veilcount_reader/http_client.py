"""HTTP client of an aggregator: one address, one key. The command line, the doctor and the reader
send their requests through it.

A key is only sent over TLS or within this machine, and never to where a redirect leads.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any, Self
from urllib.parse import quote, urlsplit

import requests

EXAMPLE = "give an address such as https://stats.example.org"


class AggregatorClient:
    """Sends requests to one aggregator; close it, or use it as a context manager."""

    def __init__(self, url: str, key: str, seconds: float) -> None:
        """Send nothing yet; a request times out after so many seconds."""
        self._url = url.rstrip("/")
        self._key = key
        self._seconds = seconds
        self._session = requests.Session()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def request(
        self, method: str, path: str, *, with_key: bool = True, **arguments: Any
    ) -> requests.Response:
        """Return the response, which may be a redirect or an error."""
        return self._session.request(
            method,
            self._url + path,
            timeout=self._seconds,
            auth=self._authorize
            if with_key
            else lambda request: request,  # always, or .netrc takes its place
            allow_redirects=False,
            **arguments,
        )

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def collection_path(name: str, what: str) -> str:
    """Return the path of an endpoint of a collection."""
    return f"/v1/collections/{quote(name, safe='')}/{what}"


def url_problem(url: str) -> str:
    """Return what is wrong with an address; empty if it is an http(s) URL with a host."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # not a port
        valid = False
    return "" if valid else EXAMPLE


def key_url_problem(url: str) -> str:
    """Return why a key must not be sent to an address; empty if it may."""
    if problem := url_problem(url):
        return problem
    parts = urlsplit(url)
    if parts.scheme == "http" and not _on_this_machine(parts.hostname or ""):
        return "give https://: over http:// the key would travel in clear"
    return ""


def _on_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
