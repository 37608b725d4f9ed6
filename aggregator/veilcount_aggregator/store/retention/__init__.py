"""Retention: when epochs are dropped, by which clock, and how what was dropped comes back."""
