"""Any of devices, epsilon and error from the other two, and what the plan would mean for people."""

from .plan import Headroom as Headroom
from .plan import PlanResult as PlanResult
from .plan import plan as plan
from .plan_question import PlanRefused as PlanRefused
from .plan_question import QuestionShape as QuestionShape
from .solvers import TrustModel as TrustModel
