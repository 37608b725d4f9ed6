"""The same question under three models of trust: local, shuffled, central."""

from .comparison import Contrast as Contrast
from .comparison import Line as Line
from .comparison import Point as Point
from .comparison import Row as Row
from .comparison import contrast as contrast
from .comparison import scaling as scaling
from .error_models import DiscreteLaplace as DiscreteLaplace
from .error_models import Error as Error
from .quantity import Quantity as Quantity
