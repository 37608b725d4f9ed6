"""A whole population at once: what its devices would send, by the exact law of the designs."""

from .local_vs_central import SimulatedEstimate as SimulatedEstimate
from .local_vs_central import Simulation as Simulation
from .local_vs_central import compare_local_and_central as compare_local_and_central
from .message_sampler import simulate_messages as simulate_messages
from .population import Population as Population
from .population import population as population
from .tally_sampler import simulate as simulate
