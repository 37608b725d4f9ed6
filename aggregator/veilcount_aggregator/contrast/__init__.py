"""The same question under three models of trust: local, shuffled, central."""

from .contrast import Contrast as Contrast
from .contrast import Line as Line
from .contrast import Point as Point
from .contrast import Row as Row
from .contrast import contrast as contrast
from .contrast import scaling as scaling
from .laws import DiscreteLaplace as DiscreteLaplace
from .laws import Error as Error
from .quantity import Quantity as Quantity
