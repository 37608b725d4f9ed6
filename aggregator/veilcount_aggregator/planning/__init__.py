"""Any of devices, epsilon and error from the other two, and what the plan would mean for people."""

from .models import Trust as Trust
from .plan import Headroom as Headroom
from .plan import Planned as Planned
from .plan import plan as plan
from .question import PlanRefused as PlanRefused
from .question import Question as Question
