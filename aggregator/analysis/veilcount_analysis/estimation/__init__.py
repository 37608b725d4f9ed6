"""Estimators and their intervals: each figure knows its own uncertainty."""

from .confidence_sequences import LookCount as LookCount
from .difference import DifferenceEstimate as DifferenceEstimate
from .difference import compare as compare
from .estimator import IntervalTarget as IntervalTarget
from .poisoning import poisoning_band as poisoning_band
from .proportions import margin as margin
from .results import CUT as CUT
from .results import IntervalTerms as IntervalTerms
from .results import MeanEstimate as MeanEstimate
from .results import NoReports as NoReports
from .results import ShareEstimates as ShareEstimates
from .results import View as View
from .results import base_cut as base_cut
from .results import noise_line as noise_line
