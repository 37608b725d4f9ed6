"""The Prometheus text exposition format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

PREFIX = "veilcount_"

Labels = tuple[tuple[str, str], ...]


def metric(
    name: str, kind: str, help_text: str, values: Iterable[tuple[Labels, float]]
) -> Iterator[str]:
    """Yield a metric: its header, and a line for each set of labels."""
    yield from head(name, kind, help_text)
    for labels, number in sorted(values):
        yield line(name, labels, number)


def gauge(name: str, help_text: str, number: float) -> Iterator[str]:
    """Yield a gauge without labels."""
    yield from metric(name, "gauge", help_text, [((), number)])


def head(name: str, kind: str, help_text: str) -> Iterator[str]:
    """Yield the header of a metric."""
    yield f"# HELP {PREFIX}{name} {help_text}\n# TYPE {PREFIX}{name} {kind}\n"


def line(name: str, labels: Labels, number: float) -> str:
    """Return one sample."""
    # No label needs an escape: names of collections are letters, digits, - and _.
    rendered = ",".join(f'{label}="{value}"' for label, value in labels)
    return f"{PREFIX}{name}{{{rendered}}} {number}\n"
