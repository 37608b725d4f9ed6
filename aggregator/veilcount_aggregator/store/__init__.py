"""Stores of spent slots, tallies and records: the interface and its engines."""

from .factory import open_store as open_store
from .health import Durability as Durability
from .health import DurabilityState as DurabilityState
from .health import ShardHealth as ShardHealth
from .health import StoreHealth as StoreHealth
from .health import Weakness as Weakness
from .interface import Cell as Cell
from .interface import Record as Record
from .interface import Records as Records
from .interface import Store as Store
from .interface import TransferPiece as TransferPiece
from .series_reports import BY_HOUR as BY_HOUR
from .series_reports import CODES as CODES
from .series_reports import COUNTED as COUNTED
from .series_reports import LIMITED as LIMITED
from .series_reports import LOG_RESTORED as LOG_RESTORED
from .series_reports import ROW_BYTES as ROW_BYTES
from .series_reports import UNDECIDED as UNDECIDED
from .series_reports import VERDICT as VERDICT
from .series_reports import VERDICTS as VERDICTS
from .series_reports import Codes as Codes
from .series_reports import Counters as Counters
from .series_reports import Quota as Quota
from .series_reports import SeriesReports as SeriesReports
from .series_reports import ServiceCounter as ServiceCounter
from .series_reports import ServiceCounts as ServiceCounts
