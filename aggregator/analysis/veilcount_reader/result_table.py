"""A result as sentences and a table, in HTML for a notebook or in text: one screen of it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

MOST_ROWS = 20
WIDTH = 88  # of a line of text


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Sentences, then a table with a caption; readable without colours, by anybody."""

    sentences: tuple[str, ...]
    caption: str
    head: tuple[str, ...]
    rows: Sequence[Sequence[str]]

    @property
    def more(self) -> str:
        """How many rows follow those that are shown; empty if all are."""
        hidden = len(self.rows) - MOST_ROWS
        return f"and {hidden:,} more" if hidden > 0 else ""

    def html(self) -> str:
        """Render the table as HTML."""
        columns = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.head)
        body = "".join(map(_html_row, self.rows[:MOST_ROWS]))
        return (
            f"{_paragraphs(self.sentences)}<table><caption>{escape(self.caption)}</caption>"
            f"<thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table>"
            f"{_paragraphs([self.more])}"
        )

    def text(self) -> str:
        """Render the table as lines: the first column to the left, the others to the right."""
        lines = [line for text in (*self.sentences, self.caption) for line in _wrapped(text)]
        return "\n".join([*lines, *self._text_rows(), *filter(None, [self.more])])

    def _text_rows(self) -> Iterator[str]:
        shown = [self.head, *self.rows[:MOST_ROWS]] if self.rows else []
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        for first, *others in shown:
            cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
            yield "  ".join([first.ljust(widths[0]), *cells]).rstrip()


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH)


def _paragraphs(texts: Iterable[str]) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in texts if text)


def _html_row(cells: Sequence[str]) -> str:
    first, *others = cells
    following = "".join(f'<td style="text-align: right">{escape(cell)}</td>' for cell in others)
    return f'<tr><th scope="row" style="text-align: left">{escape(first)}</th>{following}</tr>'
