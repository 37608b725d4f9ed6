"""The import graph as a picture in the documentation: `./dev sizes --draw` writes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .import_graph import ROOT, SPLIT, ImportGraph, read

PICTURE = ROOT / "docs" / "imports.svg"
BOX_HEIGHT = 30
ROW_HEIGHT = 56
GAP = 16
LETTER_WIDTH = 8  # wide enough for any sans-serif font at 14 pixels
LABELS_WIDTH = 80  # of the column with the numbers of the levels


@dataclass(frozen=True, slots=True)
class Box:
    """A folder in the picture: the middle of its upper edge."""

    name: str
    x: int
    y: int

    def __str__(self) -> str:
        label, width = _label(self.name), _width(self.name)
        color = "#e6e2f3" if label == self.name else "#dbe9f6"
        return (
            f'<rect x="{self.x - width // 2}" y="{self.y}" width="{width}"'
            f' height="{BOX_HEIGHT}" rx="4" fill="{color}" stroke="#345"/>'
            f'<text x="{self.x}" y="{self.y + 20}" text-anchor="middle">{label}</text>'
        )


def draw() -> None:
    """Write the picture of today's imports."""
    PICTURE.write_text(svg(read()), encoding="utf-8")


def svg(graph: ImportGraph) -> str:
    """Draw a row a level and a column a package, without the imports that others imply."""
    boxes = {box.name: box for box in _boxes(graph.levels)}
    width = max(box.x + _width(box.name) // 2 for box in boxes.values()) + GAP
    height = max(graph.levels.values()) * ROW_HEIGHT
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        ' font-family="sans-serif" font-size="14">'
    )
    return "\n".join(
        [
            head,
            "<title>What each folder of the product imports</title>",
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            *_arrows(graph, boxes),
            *_level_labels(max(graph.levels.values())),
            *map(str, boxes.values()),
            "</svg>\n",
        ]
    )


def _boxes(levels: Mapping[str, int]) -> Iterator[Box]:
    left = LABELS_WIDTH
    for package in sorted({_package(name) for name in levels}, key=lambda p: (_top(p, levels), p)):
        rows = _rows(package, levels)
        width = max(sum(_width(name) + GAP for name in row) for row in rows.values())
        for level, row in rows.items():
            for column, name in enumerate(row):
                x = left + width * (2 * column + 1) // (2 * len(row))
                yield Box(name, x, _y(level, max(levels.values())))
        left += width


def _package(name: str) -> str:
    return name.partition(".")[0]


def _top(package: str, levels: Mapping[str, int]) -> int:
    return -max(_rows(package, levels))


def _rows(package: str, levels: Mapping[str, int]) -> dict[int, list[str]]:
    rows: dict[int, list[str]] = {}
    for name in sorted(levels):
        if _package(name) == package:
            rows.setdefault(levels[name], []).append(name)
    return rows


def _label(name: str) -> str:
    return name.removeprefix(f"{SPLIT}.")


def _width(name: str) -> int:
    return len(_label(name)) * LETTER_WIDTH + GAP


def _y(level: int, levels: int) -> int:
    return (levels - level) * ROW_HEIGHT + (ROW_HEIGHT - BOX_HEIGHT) // 2


def _level_labels(levels: int) -> Iterator[str]:
    for level in range(1, levels + 1):
        yield f'<text x="{GAP}" y="{_y(level, levels) + 20}" fill="#666">level {level}</text>'


def _arrows(graph: ImportGraph, boxes: Mapping[str, Box]) -> Sequence[str]:
    return [
        _arrow(boxes[folder], boxes[name])
        for folder, names in sorted(graph.reduced.items())
        for name in sorted(names)
    ]


def _arrow(importer: Box, imported: Box) -> str:
    """Draw a curve that leaves the importer downward and then turns towards the column."""
    top, bottom = importer.y + BOX_HEIGHT, imported.y
    bend = min(ROW_HEIGHT, bottom - top)
    return (
        f'<path d="M{importer.x} {top}C{importer.x} {top + bend} {imported.x} {top}'
        f' {imported.x} {bottom}" fill="none" stroke="#789"/>'
    )
