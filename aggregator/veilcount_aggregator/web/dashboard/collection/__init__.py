"""The estimates tab of a collection."""
