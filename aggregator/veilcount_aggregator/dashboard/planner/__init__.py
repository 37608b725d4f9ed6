"""The page of the planner."""
