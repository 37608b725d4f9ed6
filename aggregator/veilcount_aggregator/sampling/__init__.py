"""Samples of many devices' messages at once, drawn from the exact distributions of mechanisms."""
