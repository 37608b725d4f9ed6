"""The two-level designs: how a value's input becomes a message, and the exact law of it."""

from .hierarchy import Hierarchy as Hierarchy
from .mean import Mean as Mean
from .plain import Plain as Plain
from .plan import Plan as Plan
from .plan import plan as plan
from .plane import Plane as Plane
from .subset import Subset as Subset
from .window import Distribution as Distribution
from .window import Window as Window
