"""What the device and the aggregator agree on: designs, definitions, schedule and wire."""

from .collection import Collection as Collection
from .collection import lint as lint
from .collection import load_collections as load_collections
from .collection import parse_collections as parse_collections
from .mechanisms import Plan as Plan
from .mechanisms import plan as plan
from .randomness import Coins as Coins
from .randomness import SystemCoins as SystemCoins
