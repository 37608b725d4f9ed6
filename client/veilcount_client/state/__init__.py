"""The state: secrets, ledger, frozen answers and outbox, in SQLite or Redis."""

from ..errors import StateError as StateError
from .interface import KEPT as KEPT
from .interface import KEY_BYTES as KEY_BYTES
from .interface import ROW_CLOSED as ROW_CLOSED
from .interface import ClientState as ClientState
from .interface import ConsentDecision as ConsentDecision
from .interface import Coverage as Coverage
from .interface import DrawOutcome as DrawOutcome
from .interface import HeldChange as HeldChange
from .interface import HeldValue as HeldValue
from .interface import Notes as Notes
from .interface import Outbox as Outbox
from .interface import OutboxLimits as OutboxLimits
from .interface import OverdueReport as OverdueReport
from .interface import PersonState as PersonState
from .interface import QueuedReport as QueuedReport
from .interface import ReportDraw as ReportDraw
from .interface import Resumption as Resumption
from .interface import SentReport as SentReport
from .interface import SpentBudget as SpentBudget
from .interface import add_closed_series as add_closed_series
from .interface import closed_series as closed_series
