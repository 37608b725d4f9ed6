"""Counters to estimates, each with an interval that says what it is of."""

from .comparing import Comparison as Comparison
from .comparing import compare as compare
from .confidence_sequences import Looks as Looks
from .estimates import estimate as estimate
from .estimates import estimate_sums as estimate_sums
from .evidence import Target as Target
from .poisoning import Band as Band
from .poisoning import Verdict as Verdict
from .poisoning import band as band
from .poisoning import suspect as suspect
from .results import Average as Average
from .results import Frequencies as Frequencies
from .results import Terms as Terms
from .results import Unanswered as Unanswered
from .sums import margin as margin
from .views import View as View
from .views import base_cut as base_cut
