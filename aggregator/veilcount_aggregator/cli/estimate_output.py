"""An estimate's answer as a person reads it: no figure without its interval, no share without n."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..text import number_format
from ..text.result_columns import spelled
from .output import tell_lines, tell_table

Document = Mapping[str, Any]

COLUMNS = ("value", "share", "interval", "answers", "if {fakes} were fake")
SHOWN_DIGITS = 12  # of a fingerprint


def tell_estimate(document: Document) -> None:
    """Print the series of an answer side by side."""
    for series in document["series"]:
        tell_lines(_head(document, series))
        for time_range in series["time_ranges"]:
            _tell_stretch(document, series, time_range)
        beside = list(_beside(series))
        tell_lines(["", *beside, ""] if beside else [""])


def _head(document: Document, series: Document) -> Iterator[str]:
    epsilon = series["epsilon"]
    yield f"{document['collection']}: {series['question']}"
    yield (
        f"series {series['fingerprint'][:SHOWN_DIGITS]};"
        f" epsilon ({number_format.adjacency(epsilon['adjacency'])}) {epsilon['event']} an event,"
        f" {epsilon['day']} a day, {epsilon['user']} a user; unit {series['unit']}"
    )
    segments = ", ".join(f"{name}: {value}" for name, value in document["segments"].items())
    if segments:
        yield f"only {segments}"


def _tell_stretch(document: Document, series: Document, time_range: Document) -> None:
    filling = " (takes answers still)" if time_range["filling"] else ""
    together = ", all at once" if document["simultaneous"] else ""
    days = f"{time_range['from']} to {time_range['to']}{filling}"
    title = f"{days}: n = {time_range['n']:,} {series['counts']}"
    if not time_range["n"]:
        tell_lines(["", title])
        return
    validity = (
        f"intervals at {document['level']:.4g}{together}, {time_range['of']}; {document['view']};"
        f" {document['validity']}"
    )
    tell_lines(["", title, validity])
    rows = list(_rows(time_range))
    if rows:
        columns = [each.format(fakes=number_format.share(document["fakes"])) for each in COLUMNS]
        tell_table(columns, rows)
    if time_range["spread"]:
        _tell_spread(time_range["spread"])
    tell_lines(_refused(time_range["verdicts"]))


def _rows(time_range: Document) -> Iterator[tuple[str, ...]]:
    for row in time_range["values"]:
        yield _share(spelled(row["value"]) or "", row)
    if time_range["absent"]:
        yield _share("(absent)", time_range["absent"])
    mean = time_range["mean"]
    if mean and mean["mean"] is not None:
        yield (
            "mean",
            number_format.figure(mean["mean"], of_shares=False),
            number_format.interval(mean["low"], mean["high"], of_shares=False),
            "",
            number_format.interval(mean["fake_low"], mean["fake_high"], of_shares=False),
        )


def _share(value: str, row: Document) -> tuple[str, ...]:
    return (
        value,
        number_format.share(row["frequency"]),
        number_format.interval(row["low"], row["high"], of_shares=True),
        f"{row['answers']:,.0f}",
        number_format.interval(row["fake_low"], row["fake_high"], of_shares=True),
    )


def _tell_spread(spread: Document) -> None:
    tell_lines(["", f"bands hold for {spread['covers']}"])
    rows = [
        (
            number_format.share(each["share"]),
            "" if each["value"] is None else number_format.figure(each["value"], of_shares=False),
            number_format.interval(each["low"], each["high"], of_shares=False),
        )
        for each in spread["quantiles"]
    ]
    tell_table(("of answers below", "number", "band"), rows)


def _refused(verdicts: Mapping[str, int]) -> list[str]:
    listed = ", ".join(f"{word} {number:,}" for word, number in verdicts.items())
    return [f"reports not counted: {listed}"] if listed else []


def _beside(series: Document) -> Iterator[str]:
    """Yield what else there is to know: pages, noise, fakes, losses."""
    if series["pages"] > 1:
        yield f"page {series['page']:,} of {series['pages']:,} ({series['size']:,} values): --page"
    if series["stand_out"] is not None:
        number = f"{series['stand_out']:,}"
        yield f"{number} of {series['size']:,} values stand out from noise alone"
    if series["suspicious"]:
        yield f"SUSPICIOUS: {series['suspicion']}"
    yield from (each["text"] for each in series["losses"])
