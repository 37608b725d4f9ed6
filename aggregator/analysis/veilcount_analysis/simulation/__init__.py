"""Simulation of a whole population at once, from the exact distributions of its mechanisms."""

from .local_vs_central import Simulation as Simulation
from .local_vs_central import compare_local_and_central as compare_local_and_central
from .population import Population as Population
from .population import population as population
from .population import simulate as simulate
from .population import simulate_messages as simulate_messages
