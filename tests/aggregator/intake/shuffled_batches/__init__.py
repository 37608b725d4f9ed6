"""Batches that shufflers hand over."""
