"""Delivery: when and how what waits on the device is sent to the aggregator."""
