"""What a result is shown as: sentences and tables, the same on a page and on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Row: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Figures as text, in rows under a caption."""

    caption: str
    columns: Row
    rows: Sequence[Row]


Part: TypeAlias = str | Table
