"""The planner: devices, epsilon or error from the other two, and the definition to copy."""

from .page import pages as pages
