"""The aggregator's side of veilcount: it counts randomized answers and says what they mean."""

from .counting import tally as tally
from .estimating import estimate as estimate
