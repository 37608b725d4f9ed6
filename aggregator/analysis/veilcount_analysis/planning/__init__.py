"""Plans: any of devices, epsilon and error from the other two, and what it reveals of a person."""

from .plan import PlanResult as PlanResult
from .plan import plan as plan
from .solvers import BatchTerms as BatchTerms
from .solvers import QuestionShape as QuestionShape
from .solvers import TrustedParty as TrustedParty
