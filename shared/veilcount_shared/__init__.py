"""The protocol of device and aggregator: mechanisms, definitions, schedule and wire formats."""

from .collection import Collection as Collection
from .collection import lint as lint
from .collection import load_collections as load_collections
from .collection import parse_collections as parse_collections
from .mechanisms import Selection as Selection
from .mechanisms import select_mechanism as select_mechanism
from .randomness import RandomSource as RandomSource
from .randomness import SystemRandomSource as SystemRandomSource
