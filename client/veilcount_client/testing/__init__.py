"""For tests only: no module of the client imports this one.

With pytest, take the fixture `veilcount`; with anything else, `with ClientHarness() as veilcount:`.
"""

from .harness import ClientHarness as ClientHarness
from .harness import RecordedValue as RecordedValue
from .seeded_randomness import SeededRandomSource as SeededRandomSource
from .settable_clock import SettableClock as SettableClock
from .transports import RecordingTransport as RecordingTransport
from .transports import WsgiTransport as WsgiTransport
