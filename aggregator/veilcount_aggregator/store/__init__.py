"""Where spent slots, tallies and small records live: the contract, and its engines."""

from .contract import CODES as CODES
from .contract import COUNTED as COUNTED
from .contract import ROW_BYTES as ROW_BYTES
from .contract import VERDICT as VERDICT
from .contract import VERDICTS as VERDICTS
from .contract import Cell as Cell
from .contract import Codes as Codes
from .contract import Counters as Counters
from .contract import Durability as Durability
from .contract import Durable as Durable
from .contract import Health as Health
from .contract import Note as Note
from .contract import Notes as Notes
from .contract import Piece as Piece
from .contract import Record as Record
from .contract import Records as Records
from .contract import Spends as Spends
from .contract import Store as Store
from .contract import Weakness as Weakness
from .opening import open_store as open_store
