"""Kinds of question: what a query asks of a collection, and what is estimated for it."""
