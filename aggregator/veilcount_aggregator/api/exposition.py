"""The Prometheus text exposition format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

PREFIX = "veilcount_"

Labels = tuple[tuple[str, str], ...]


def metric(
    name: str, kind: str, says: str, values: Iterable[tuple[Labels, float]]
) -> Iterator[str]:
    """Yield a metric: what it is, and a line for each set of labels."""
    yield from head(name, kind, says)
    for labels, number in sorted(values):
        yield line(name, labels, number)


def head(name: str, kind: str, says: str) -> Iterator[str]:
    """Yield what a metric is."""
    yield f"# HELP {PREFIX}{name} {says}\n# TYPE {PREFIX}{name} {kind}\n"


def line(name: str, labels: Labels, number: float) -> str:
    """Return one sample."""
    # No label needs an escape: names of collections are letters, digits, - and _.
    told = ",".join(f'{label}="{value}"' for label, value in labels)
    return f"{PREFIX}{name}{{{told}}} {number}\n"
