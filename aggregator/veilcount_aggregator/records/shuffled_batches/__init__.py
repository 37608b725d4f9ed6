"""What is stored of the batches that shufflers hand over: entries, records, states."""
