"""Counters that are at hand: in published files, or as counts that a warehouse has grouped."""

from .counters_source import CountersSource as CountersSource
from .counters_source import estimate_counters as estimate_counters
from .counts_file import read_counts as read_counts
from .open_counters import OpenCounters as OpenCounters
from .open_counters import join_open_counters as join_open_counters
from .open_counters import read_open_counters as read_open_counters
