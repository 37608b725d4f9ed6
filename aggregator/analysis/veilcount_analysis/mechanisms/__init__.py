"""One handler per mechanism, and what is asked of all of them: tallies, estimates, tests."""

from . import distribution as distribution
from . import hashed_strings as hashed_strings
from . import identity as identity
from . import mean as mean
from . import moments as moments
from . import projective_geometry as projective_geometry
from . import range_tree as range_tree
from . import subset_selection as subset_selection
from . import trend as trend
from .estimates import estimate as estimate
from .estimates import estimate_mean as estimate_mean
from .estimates import estimate_number as estimate_number
from .estimates import estimate_shares as estimate_shares
from .estimates import estimate_sums as estimate_sums
from .estimates import poisoning_test as poisoning_test
from .handler import handler_of as handler_of
from .handler import increments as increments
from .handler import share_handler as share_handler
from .handler import share_handler_of as share_handler_of
from .handler import tally as tally
from .handler import valid_messages as valid_messages
