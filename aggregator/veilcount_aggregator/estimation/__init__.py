"""Counters to estimates, each with an interval that says what it is of."""

from .confidence_sequences import Looks as Looks
from .difference import Comparison as Comparison
from .difference import compare as compare
from .estimator import Target as Target
from .group_sums import margin as margin
from .poisoning import Band as Band
from .poisoning import Verdict as Verdict
from .poisoning import band as band
from .poisoning import suspect as suspect
from .postprocessing import View as View
from .postprocessing import base_cut as base_cut
from .results import Average as Average
from .results import Frequencies as Frequencies
from .results import Terms as Terms
from .results import Unanswered as Unanswered
from .series_estimates import estimate as estimate
from .series_estimates import estimate_sums as estimate_sums
