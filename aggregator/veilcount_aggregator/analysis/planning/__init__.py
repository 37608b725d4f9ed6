"""Plans: any of devices, epsilon and error from the other two, and what it reveals of a person."""

from .plan import Headroom as Headroom
from .plan import PlanResult as PlanResult
from .plan import plan as plan
from .plan_question import QuestionShape as QuestionShape
from .solvers import TrustModel as TrustModel
