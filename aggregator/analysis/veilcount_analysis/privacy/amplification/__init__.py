"""Privacy amplification by shuffling: the epsilon of reports without sender and time."""

from .blanket import blanket_delta as blanket_delta
from .bounds import Amplified as Amplified
from .bounds import Family as Family
from .bounds import amplified as amplified
from .bounds import blanket_epsilon as blanket_epsilon
from .bounds import clones_delta as clones_delta
from .bounds import clones_epsilon as clones_epsilon
from .bounds import keeps_epsilon as keeps_epsilon
from .bounds import largest_local_epsilon as largest_local_epsilon
