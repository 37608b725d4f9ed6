"""Simulation of a whole population at once, from the exact distributions of its mechanisms."""

from .changing_states import SimulatedTrend as SimulatedTrend
from .changing_states import simulate_trend as simulate_trend
from .correlated_numbers import simulate_numbers as simulate_numbers
from .correlated_numbers import true_moments as true_moments
from .local_vs_central import SimulatedEstimate as SimulatedEstimate
from .local_vs_central import Simulation as Simulation
from .local_vs_central import compare_local_and_central as compare_local_and_central
from .population import Population as Population
from .population import population as population
from .population import simulate as simulate
from .population import simulate_messages as simulate_messages
from .string_search import SimulatedSearch as SimulatedSearch
from .string_search import simulate_discovery as simulate_discovery
from .string_search import simulate_search as simulate_search
