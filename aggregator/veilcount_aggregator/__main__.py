"""`python -m veilcount_aggregator`: the same as `veilcount`."""

from .cli import main

if __name__ == "__main__":
    main()
