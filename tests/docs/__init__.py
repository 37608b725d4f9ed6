"""The documentation is run: what a reader would copy, in the order of the page."""
