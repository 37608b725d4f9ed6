"""What devices, shufflers and aggregators agree on about reports that travel in crowds."""
