"""Checks of what a store holds."""
