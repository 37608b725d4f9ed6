"""Hooks for frameworks. Each imports its framework only when it is used."""
