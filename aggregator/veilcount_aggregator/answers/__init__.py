"""From a checked question to an answer: what the doors, the pages and the commands all say."""

from .alert import Alarm as Alarm
from .alert import Alert as Alert
from .budgets import BudgetAnswer as BudgetAnswer
from .budgets import BudgetQuestion as BudgetQuestion
from .budgets import budget as budget
from .compared import CompareAnswer as CompareAnswer
from .comparisons import CompareQuestion as CompareQuestion
from .comparisons import compare as compare
from .contrasts import ContrastAnswer as ContrastAnswer
from .contrasts import ContrastQuestion as ContrastQuestion
from .contrasts import contrast as contrast
from .estimates import estimate as estimate
from .holdings import Holdings as Holdings
from .holdings import UnknownCollection as UnknownCollection
from .plans import PlanQuestion as PlanQuestion
from .plans import plan as plan
from .question import Among as Among
from .question import By as By
from .question import Question as Question
from .said import EstimateAnswer as EstimateAnswer
from .spelling import encode as encode
from .spelling import plain as plain
