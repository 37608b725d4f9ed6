"""How figures, units and guarantees are written."""
