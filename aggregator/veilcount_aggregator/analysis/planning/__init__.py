"""Any of devices, epsilon and error from the other two, and what the plan would mean for people."""

from .plan import Headroom as Headroom
from .plan import Planned as Planned
from .plan import plan as plan
from .plan_question import PlanRefused as PlanRefused
from .plan_question import Question as Question
from .solvers import Trust as Trust
