"""The budget tab of a collection."""
