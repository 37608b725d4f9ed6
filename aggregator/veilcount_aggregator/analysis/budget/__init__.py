"""What a person reveals: per event, day and life; what was counted; what several answers tell."""

from .account import Budget as Budget
from .account import budget as budget
from .averaging_attack import Guess as Guess
from .averaging_attack import guesses as guesses
from .composition import Together as Together
from .composition import together as together
from .cross_collection import Across as Across
from .cross_collection import Total as Total
from .cross_collection import across as across
from .distinguishing_advantage import chance_to_tell as chance_to_tell
from .distinguishing_advantage import two_values_epsilon as two_values_epsilon
from .epsilon_levels import Level as Level
from .epsilon_levels import Levels as Levels
from .epsilon_levels import levels as levels
from .privacy_levels import Figures as Figures
from .privacy_levels import figures as figures
from .spend_histogram import Bar as Bar
from .spend_histogram import Spent as Spent
from .spend_histogram import spent as spent
