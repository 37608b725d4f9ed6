"""What a shuffler would give: the epsilon of reports that lost who sent them, and when."""

from .blanket import blanket_delta as blanket_delta
from .bounds import Amplified as Amplified
from .bounds import amplified as amplified
from .bounds import blanket_epsilon as blanket_epsilon
from .bounds import clones_epsilon as clones_epsilon
from .clones import clones_delta as clones_delta
from .local import Family as Family
from .local import keeps_epsilon as keeps_epsilon
from .local import largest_local_epsilon as largest_local_epsilon
