"""Where an aggregator may be asked: a key travels behind TLS, or within one machine."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

EXAMPLE = "give an address such as https://stats.example.org"


def why_not(url: str) -> str:
    """Return why a key cannot be sent to an address; nothing if it can."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return EXAMPLE
    if parts.scheme not in {"http", "https"} or not host:
        return EXAMPLE
    if parts.scheme == "http" and not _on_this_machine(host):
        return "give https://: over http:// the key would travel in clear"
    return ""


def _on_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
