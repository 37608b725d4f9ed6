"""Plans: any of devices, epsilon and error from the other two, and what it reveals of a person."""

from .covers import CoverPlan as CoverPlan
from .covers import cover_plan as cover_plan
from .plan import PlanResult as PlanResult
from .plan import plan as plan
from .solvers import QuestionShape as QuestionShape
from .solvers import TrustedParty as TrustedParty
