"""A series: what is collected under one fingerprint, and its tallies."""
