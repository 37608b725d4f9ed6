"""For tests only: no module of the client imports this one.

With pytest, take the fixture `veilcount`; with anything else, `with ClientHarness() as veilcount:`.
"""

from .doubles import RecordingTransport as RecordingTransport
from .doubles import SeededRandomSource as SeededRandomSource
from .doubles import SettableClock as SettableClock
from .doubles import WsgiTransport as WsgiTransport
from .harness import ClientHarness as ClientHarness
from .harness import RecordedValue as RecordedValue
