"""The intake: bytes to columns to verdicts, a group of requests at a time."""
