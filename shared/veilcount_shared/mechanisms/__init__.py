"""The two-level designs: how a value's input becomes a message, and the exact law of it."""

from .identity import Plain as Plain
from .mean import Mean as Mean
from .projective_geometry import Plane as Plane
from .range_tree import Hierarchy as Hierarchy
from .selection import Plan as Plan
from .selection import plan as plan
from .square_wave import Distribution as Distribution
from .square_wave import Window as Window
from .subset_selection import Subset as Subset
