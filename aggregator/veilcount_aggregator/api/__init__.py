"""The aggregator's doors: one module a noun, problems and document for all of them."""
