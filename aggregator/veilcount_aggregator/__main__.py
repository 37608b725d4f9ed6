"""`python -m veilcount_aggregator`: the same as `veilcount`."""

from .operate.cli import main

if __name__ == "__main__":
    main()
