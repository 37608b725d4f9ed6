"""The way of reports to the aggregator: direct, or through a relay."""

from __future__ import annotations

from collections.abc import Callable

from veilcount_shared.installing import install
from veilcount_shared.oblivious_http.key_file import decode_key_file

from ..errors import NotUsable
from ..settings import ClientSettings
from .transport import HttpTransport, Transport, read_relay_keys


def connect(
    settings: ClientSettings,
    key_file: bytes | None,
    now: Callable[[], float],
    announced: Callable[[str], object],
) -> Transport:
    """Return what posts to the aggregator; the relay's keys may be there in place of a file."""
    if settings.relay is None:
        return HttpTransport(settings.url or "", settings.key, now, announced)
    try:
        from .relay import RelayTransport  # noqa: PLC0415 - needs cryptography
    except ImportError:
        raise NotUsable(f"relay: install it with {install('relay')}") from None
    content = read_relay_keys(settings.relay_keys) if key_file is None else key_file
    configs = [key.config for key in decode_key_file(content)]
    return RelayTransport(settings.relay, configs, settings.key, now, announced)
