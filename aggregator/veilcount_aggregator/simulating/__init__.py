"""A whole population at once: what its devices would send, by the exact law of the designs."""

from .beside import Figures as Figures
from .beside import Simulation as Simulation
from .beside import beside as beside
from .counters import simulate as simulate
from .messages import simulate_messages as simulate_messages
from .population import Population as Population
from .population import population as population
