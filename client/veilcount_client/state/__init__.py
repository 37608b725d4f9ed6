"""Where secrets, ledger, frozen answers and outbox live."""

from .interface import KEPT as KEPT
from .interface import KEY_BYTES as KEY_BYTES
from .interface import ROW_CLOSED as ROW_CLOSED
from .interface import Bounds as Bounds
from .interface import Draw as Draw
from .interface import Fate as Fate
from .interface import HeldValue as HeldValue
from .interface import Parcel as Parcel
from .interface import Person as Person
from .interface import RowClose as RowClose
from .interface import Sent as Sent
from .interface import Spent as Spent
from .interface import State as State
from .interface import StateError as StateError
