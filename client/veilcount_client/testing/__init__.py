"""For tests only: no module of the client imports this one.

With pytest, take the fixture `veilcount`; with anything else, `with Kit() as veilcount:`.
"""

from .clock import SettableClock as SettableClock
from .coins import SeededCoins as SeededCoins
from .kit import Kit as Kit
from .recording import Recorded as Recorded
from .transports import RecordingTransport as RecordingTransport
from .transports import WsgiTransport as WsgiTransport
