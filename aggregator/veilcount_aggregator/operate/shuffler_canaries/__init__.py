"""Canaries of the operator: planned, sent as devices send, and looked for in their batches."""
