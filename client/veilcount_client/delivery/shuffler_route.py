"""The route of reports that travel by shuffler: its address, and the keys that come with the app.

Without either such a collection is refused by name: it was promised to go no other way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from veilcount_shared import Collection, RandomSource
from veilcount_shared.cached_property import cached_property
from veilcount_shared.errors import ObliviousError
from veilcount_shared.installing import install
from veilcount_shared.oblivious_http.key_file import RelayKey, decode_key_file

from ..errors import NotUsable
from ..settings import ClientSettings
from ..state import ClientState
from .replies import Replies, describe_shuffler
from .shuffler import EnvelopeTransport, Shuffler, ShufflerAddresses, ShufflerTransport
from .transport import in_clear, is_on_this_machine, malformed, read_relay_keys

if TYPE_CHECKING:
    from ..recording.shuffler_sealing import Sealing

NEEDED = (
    "its reports travel by shuffler, and no other way: give Client(shuffler=URL,"
    " relay_keys=FILE), or VEILCOUNT_SHUFFLER and VEILCOUNT_RELAY_KEYS"
)


@dataclass(frozen=True)
class ShufflerRoute:
    """What of an app's settings concerns its shuffler."""

    settings: ClientSettings
    is_test: bool  # whether what is recorded is a developer's own
    transport: EnvelopeTransport | None = None  # in place of an address
    key_file: bytes | None = None  # its contents, in place of a path

    @cached_property
    def problem(self) -> str:
        """Why nothing can go this way, and the fix; empty without a problem."""
        url = self.settings.shuffler
        if self.transport is None and url is None:
            return NEEDED
        if self.transport is None and url is not None and (problem := malformed(url, "shuffler")):
            return problem
        if self.is_test and not self._is_here:
            return (
                "development: a shuffler cannot tell a developer's reports from others: give the"
                " one of `veilcount dev --shuffler`, on this machine"
            )
        try:
            self.keys  # noqa: B018 - whether they can be read
            from ..recording import shuffler_sealing  # noqa: PLC0415, F401 - needs cryptography
        except (NotUsable, ObliviousError) as error:
            return str(error)
        except ImportError:
            return f"install what seals reports: {install('relay')}"
        return ""

    @property
    def in_clear(self) -> str:
        """What others on the way see, and the fix; empty without a problem."""
        what = "the name of a report's batch travels"
        return "" if self._is_here else in_clear(self.settings.shuffler or "", None, what)

    @cached_property
    def keys(self) -> list[RelayKey]:
        """The gateway's public keys, the newest first."""
        content = self.key_file
        return decode_key_file(
            read_relay_keys(self.settings.relay_keys) if content is None else content
        )

    def sealing(self, state: ClientState, now: Callable[[], float]) -> Sealing:
        """Return the sealing of reports, by the state's keys and addresses."""
        from ..recording.shuffler_sealing import KnownKeys, Sealing  # noqa: PLC0415 - likewise

        addresses = ShufflerAddresses(state, self.settings.shuffler or "", now())
        keys = KnownKeys(state, self.keys, now())
        return Sealing(state, keys.of_period, addresses.of_period)

    def open(
        self,
        state: ClientState,
        collections: Mapping[str, Collection],
        randomness: RandomSource,
        now: Callable[[], float],
    ) -> Shuffler:
        """Return the sender of sealed reports of these collections."""
        series = {collection.fingerprint: collection for collection in collections.values()}
        names = {fingerprint: collection.name for fingerprint, collection in series.items()}
        host = self.settings.shuffler_host or "the shuffler"
        replies = Replies(state, names, now, describe_shuffler, host)
        return Shuffler(series, self._connect(now), replies, randomness, now)

    def _connect(self, now: Callable[[], float]) -> Callable[[str], EnvelopeTransport]:
        if (transport := self.transport) is not None:
            return lambda _: transport
        return cache(lambda url: ShufflerTransport(url, now))

    @property
    def _is_here(self) -> bool:
        return self.transport is not None or is_on_this_machine(self.settings.shuffler_host)
