"""Where spent slots, tallies and small records live: the contract, and its engines."""

from .contract import BY_HOUR as BY_HOUR
from .contract import BY_MEMORY as BY_MEMORY
from .contract import CODES as CODES
from .contract import COUNTED as COUNTED
from .contract import LIMITED as LIMITED
from .contract import ROW_BYTES as ROW_BYTES
from .contract import UNDECIDED as UNDECIDED
from .contract import VERDICT as VERDICT
from .contract import VERDICTS as VERDICTS
from .contract import Cell as Cell
from .contract import Codes as Codes
from .contract import Counters as Counters
from .contract import Durable as Durable
from .contract import Health as Health
from .contract import Note as Note
from .contract import Notes as Notes
from .contract import Piece as Piece
from .contract import Quota as Quota
from .contract import Record as Record
from .contract import Records as Records
from .contract import Shard as Shard
from .contract import Spends as Spends
from .contract import Store as Store
from .memory import MemoryLimits as MemoryLimits
from .memory import MemoryUse as MemoryUse
from .opening import open_store as open_store
