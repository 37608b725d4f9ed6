"""Transport security: reports travel over TLS, or within one machine."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

HTTPS = "give https://, or the loopback address of a proxy here that ends TLS"


def in_clear(url: str, key: str | None) -> str:
    """Return what would travel unencrypted to a URL, and the fix; empty without a problem."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return ""  # no address at all: nothing is sent there
    if parts.scheme != "http" or not host or _on_this_machine(host):
        return ""
    what = "the key would travel" if key else "pseudonyms travel"
    return f"over http:// {what} in clear: {HTTPS}"


def _on_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
