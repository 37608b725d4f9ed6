"""What a person reveals: per event, day and life; what was counted; what several answers tell."""

from .across import Across as Across
from .across import Total as Total
from .across import across as across
from .averaging import Guess as Guess
from .averaging import guesses as guesses
from .budget import Budget as Budget
from .budget import budget as budget
from .figures import Figures as Figures
from .figures import figures as figures
from .levels import Level as Level
from .levels import Levels as Levels
from .levels import levels as levels
from .spent import Bar as Bar
from .spent import Spent as Spent
from .spent import spent as spent
from .together import Together as Together
from .together import together as together
from .two_values import chance_to_tell as chance_to_tell
from .two_values import two_values_epsilon as two_values_epsilon
