"""What the device and the aggregator agree on: designs, definitions, schedule and wire."""

from .coins import Coins as Coins
from .coins import SystemCoins as SystemCoins
from .collection import Collection as Collection
from .collection import lint as lint
from .collection import load_collections as load_collections
from .collection import parse_collections as parse_collections
from .design import Plan as Plan
from .design import plan as plan
