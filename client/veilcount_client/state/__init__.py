"""Where secrets, ledger, frozen answers and outbox live."""

from .contract import KEPT as KEPT
from .contract import KEY_BYTES as KEY_BYTES
from .contract import ROW_CLOSED as ROW_CLOSED
from .contract import Bounds as Bounds
from .contract import Draw as Draw
from .contract import Fate as Fate
from .contract import HeldValue as HeldValue
from .contract import Parcel as Parcel
from .contract import Person as Person
from .contract import RowClose as RowClose
from .contract import Sent as Sent
from .contract import Spent as Spent
from .contract import State as State
from .contract import StateError as StateError
