"""From a checked question to an answer: what the doors, the pages and the commands all say."""

from .alert import Alarm as Alarm
from .alert import Alert as Alert
from .budgets import BudgetAnswer as BudgetAnswer
from .budgets import BudgetQuestion as BudgetQuestion
from .budgets import budget as budget
from .comparison import CompareQuestion as CompareQuestion
from .comparison import compare as compare
from .comparison_schema import CompareAnswer as CompareAnswer
from .contrasts import ContrastAnswer as ContrastAnswer
from .contrasts import ContrastQuestion as ContrastQuestion
from .contrasts import contrast as contrast
from .estimate import estimate as estimate
from .estimate_query import Among as Among
from .estimate_query import By as By
from .estimate_query import Question as Question
from .estimate_schema import EstimateAnswer as EstimateAnswer
from .json_encoding import encode as encode
from .json_encoding import plain as plain
from .plans import PlanQuestion as PlanQuestion
from .plans import plan as plan
from .snapshot import Holdings as Holdings
from .snapshot import UnknownCollection as UnknownCollection
