"""Recording: from a value to a randomized report that its budget was reserved for."""
