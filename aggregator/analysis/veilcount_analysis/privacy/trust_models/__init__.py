"""The same question under three trust models: local, shuffled, central."""

from .comparison import TrustComparison as TrustComparison
from .comparison import TrustModelRow as TrustModelRow
from .comparison import compare_trust_models as compare_trust_models
from .comparison import scaling as scaling
from .quantity import ErrorEstimate as ErrorEstimate
from .quantity import Quantity as Quantity
from .shuffled_run import shuffled_run as shuffled_run
