"""Results as tables of HTML, as a notebook shows them: readable without colours, by anybody."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

MOST_ROWS = 20


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; of many rows the first, and how many follow."""
    columns = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(_row(row) for row in rows[:MOST_ROWS])
    more = f"<p>and {len(rows) - MOST_ROWS:,} more</p>" if len(rows) > MOST_ROWS else ""
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table>{more}"
    )


def paragraphs(texts: Iterable[str]) -> str:
    """Return sentences, one below the other."""
    return "".join(f"<p>{escape(text)}</p>" for text in texts if text)


def _row(cells: Sequence[str]) -> str:
    first, *others = cells
    rest = "".join(f'<td style="text-align: right">{escape(cell)}</td>' for cell in others)
    return f'<tr><th scope="row" style="text-align: left">{escape(first)}</th>{rest}</tr>'
