"""For tests only: no module of the client imports this one.

With pytest, take the fixture `veilcount`; with anything else, `with Kit() as veilcount:`.
"""

from .clock import SettableClock as SettableClock
from .harness import Kit as Kit
from .recorded_values import Recorded as Recorded
from .seeded_randomness import SeededRandomSource as SeededRandomSource
from .transports import RecordingTransport as RecordingTransport
from .transports import WsgiTransport as WsgiTransport
