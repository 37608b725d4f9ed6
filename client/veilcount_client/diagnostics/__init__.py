"""Diagnostics: why nothing left this machine, and what a new definition would change."""
