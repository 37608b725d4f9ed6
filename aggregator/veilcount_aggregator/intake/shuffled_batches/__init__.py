"""The intake of batches that shufflers hand over: checked, opened, and counted once."""
