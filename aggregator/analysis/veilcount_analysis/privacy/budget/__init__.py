"""Privacy budgets: epsilon per event, day and user, promised and spent; composition; attacks."""

from .account import CollectionBudget as CollectionBudget
from .account import HistogramBar as HistogramBar
from .account import budget as budget
from .account import count_spending as count_spending
from .composition import ComposedEpsilon as ComposedEpsilon
from .composition import CrossCollectionBudget as CrossCollectionBudget
from .composition import compose_campaign as compose_campaign
from .composition import compose_collections as compose_collections
from .composition import guessing_curve as guessing_curve
from .epsilon_levels import UnitComparison as UnitComparison
from .epsilon_levels import levels as levels
from .privacy_levels import figures as figures
from .windows import window_epsilon as window_epsilon
from .windows import window_epsilons as window_epsilons
