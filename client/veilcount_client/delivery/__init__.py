"""Delivery: when and how queued reports are sent to the aggregator."""
