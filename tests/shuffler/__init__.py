"""The shuffler: its store under every crash and interleaving, its hand-over, its server."""
