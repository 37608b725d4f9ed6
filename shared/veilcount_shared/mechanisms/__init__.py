"""Mechanisms: the randomizers of the local model, their exact parameters and distributions."""

from .hashed_strings import HashedStrings as HashedStrings
from .identity import Identity as Identity
from .interface import Mechanism as Mechanism
from .interface import Randomizer as Randomizer
from .mean import MeanMechanism as MeanMechanism
from .moments import Moments as Moments
from .pair_tables import PairTables as PairTables
from .projective_geometry import ProjectiveGeometry as ProjectiveGeometry
from .range_tree import RangeTree as RangeTree
from .selection import Selection as Selection
from .selection import select_mechanism as select_mechanism
from .square_wave import DistributionMechanism as DistributionMechanism
from .square_wave import SquareWave as SquareWave
from .subset_selection import SubsetSelection as SubsetSelection
from .trend import TrendMechanism as TrendMechanism
from .trend import TrendState as TrendState
