"""One handler per mechanism, and what is asked of all of them: tallies, estimates, tests.

Importing this package imports all of its modules, so that each registers its handler.
"""

from importlib import import_module
from pkgutil import iter_modules

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

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
