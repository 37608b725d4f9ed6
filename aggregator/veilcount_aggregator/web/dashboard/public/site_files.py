"""The files of the public site, by their path: the same where they are served and exported.

They need no script, no cookie and no other host. All links are relative.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import cache
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jinja2 import Environment, PackageLoader

from veilcount_analysis.counts import OpenCounters
from veilcount_analysis.estimation import View
from veilcount_analysis.kinds.panels import Form
from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.text.number_format import level
from veilcount_analysis.text.privacy_guarantees import epsilons
from veilcount_analysis.text.utc_days import days
from veilcount_shared.notice import notice
from veilcount_shared.wire import JSON_TYPE

from ....queries import Snapshot, encode
from ....queries.estimate_schema import RangeResult
from ....queries.export import CSV_TYPE, PARQUET_TYPE, ArrowUnavailable, stream_csv, stream_parquet
from ....queries.published_figures import PublishedFigures, published_figures
from ....queries.publishing_key import public_pem, public_text
from ..collection.figure_panels import PanelView, panel_views
from ..collection.page import listed_figures
from ..collection.time_series import TimeSeries, time_series, time_series_query
from ..collection.url_state import ShownQuery, time_ranges_shown
from ..formatting import FILTERS
from ..pages import PublicFile
from ..releases.view import release_entry, release_text

HTML, SVG, PEM = "text/html; charset=utf-8", "image/svg+xml", "application/x-pem-file"
INDEX, STYLE, KEY = "index.html", "style.css", "key.pem"
SHOWN_DIGITS = 12  # of a fingerprint
NOTHING_YET = "No period is over yet with enough reports to publish"
NO_RELEASE = "No release yet: a trusted curator holds the true values"
TOO_FEW = "Too few reports: figures would be noise"
MOST = 50  # figures in one panel of a page
CHART_ROWS = 20  # figures that a chart for other pages has
CHART_NAME, BADGE_TEXT = 30, 80  # characters


Files = dict[str, PublicFile]


def site_files(
    snapshot: Snapshot, names: Sequence[str], style: bytes, key: Ed25519PrivateKey | None = None
) -> Files:
    """Return all files of some collections; a `key` signs their counters."""
    sign = key.sign if key else None
    publications = [published_figures(snapshot, name, sign) for name in names]
    files: Files = {STYLE: PublicFile(style, "text/css")}
    files[INDEX] = _html("public_index.html", entries=list(map(_entry, publications)))
    if key is not None:
        files[KEY] = PublicFile(public_pem(key), PEM)
    signed_by = public_text(key) if key else ""
    for published in publications:
        name = published.series.collection.name
        own = collection_files(published, signed_by, snapshot.today)
        files |= {f"{name}/{path}": file for path, file in own.items()}
    return files


def collection_files(published: PublishedFigures, signed_by: str, today: date) -> Files:
    """Return the files of one collection."""
    files = _releases_files(published) if published.releases else _estimate_files(published)
    files["badge.svg"] = _svg("public_badge.svg", **_badge(published))
    shown = _entry(published) | {
        "collection": published.series.collection,
        "epsilon": epsilons(published.series.collection),
        "notice": notice(published.series.collection).texts(),
        "fingerprint": published.series.fingerprint,
        "signed_by": signed_by,
        "today": today,
        "views": _views(published),
        "over_time": _over_time(published),
        "releases": [release_entry(place, one) for place, one in enumerate(published.releases, 1)][
            ::-1
        ],
        "counters": [(counters_name(one), one) for one in published.counters],
        "files": [name for name in files if not name.startswith("counters-")],
    }
    files[INDEX] = _html("public.html", **shown)
    return files


def counters_name(counters: OpenCounters) -> str:
    """Return the name of a file of open counters."""
    fingerprint = counters.collection.fingerprint[:SHOWN_DIGITS]
    return f"counters-{fingerprint}-{counters.period}.json"


def _estimate_files(published: PublishedFigures) -> Files:
    if published.estimate is None:
        return {}
    files = {
        "estimates.json": PublicFile(encode(published.estimate), JSON_TYPE),
        "estimates.csv": PublicFile(b"".join(stream_csv(published.estimate)), CSV_TYPE),
    }
    with suppress(ArrowUnavailable):
        parquet = b"".join(stream_parquet(published.estimate))
        files["estimates.parquet"] = PublicFile(parquet, PARQUET_TYPE)
    files["chart.svg"] = _svg("public_chart.svg", **_chart(published))
    counters = {
        counters_name(one): PublicFile(one.encode(), JSON_TYPE) for one in published.counters
    }
    return files | counters


def _releases_files(published: PublishedFigures) -> Files:
    return {"releases.json": PublicFile(msgspec.json.encode(published.releases), JSON_TYPE)}


# -- what templates show ---------------------------------------------------------------------------


def _range(published: PublishedFigures) -> RangeResult | None:
    return published.estimate.series[-1].ranges[-1] if published.estimate else None


def _entry(published: PublishedFigures) -> dict[str, Any]:
    """Return the finding of a collection, and what it rests on."""
    collection, covered = published.series.collection, _range(published)
    finding, basis, decision = NOTHING_YET, "", ""
    if collection.trust.releases:
        finding = NO_RELEASE
    if published.releases:
        finding, basis = release_text(published.releases[-1]), "noise added by a trusted curator"
    elif covered is not None and published.estimate is not None:
        finding, decision = TOO_FEW, ""
        if lead := published.headline:
            finding, decision = lead.text, lead.decision
        basis = (
            f"{covered.n:,} {published.estimate.series[-1].counts},"
            f" {days(covered.first, covered.last)}; intervals at {level(published.estimate.level)},"
            f" {covered.estimand}; answers randomized on devices"
        )
    return {"name": collection.name, "question": collection.question} | {
        "finding": finding,
        "decision": decision,
        "basis": basis,
        "estimate": published.estimate,
    }


def _views(published: PublishedFigures) -> list[PanelView]:
    """Return the panels of figures, of a long list the largest: the files have all."""
    if published.estimate is None:
        return []
    kind, (series,) = kind_of(published.series.collection), published.estimate.series
    views = panel_views(kind, published.estimate, listed_figures(kind, series), None)
    return [
        view if view.panel.form in {Form.LINE, Form.GRID} else replace(view, rows=view.rows[:MOST])
        for view in views
    ]


def _over_time(published: PublishedFigures) -> TimeSeries | None:
    """Return the chart over time, as the dashboard draws it of the published counters."""
    snapshot, estimate, series = published.snapshot, published.estimate, published.series
    if snapshot is None or estimate is None or published.headline is None:
        return None
    shown, (estimated,) = ShownQuery.parse(series.collection, {}), estimate.series
    by = time_ranges_shown(snapshot, series, shown, {}, estimated.ranges[-1].n)
    if by is None:
        return None
    query = time_series_query(series, shown, by, estimated, View.RAW)
    return time_series(snapshot, series.collection.name, query, estimated.facts.get("size"))


def _chart(published: PublishedFigures) -> dict[str, Any]:
    """Return the dots of a chart for other pages: of the first panel that has some."""
    dots = next((one.dots for one in _views(published) if one.panel.form is Form.DOTS), None)
    rows = dots.rows[:CHART_ROWS] if dots else []
    named = [(_cut(row.name, CHART_NAME), row) for row in rows]
    ticks = dots.ticks if dots else ()
    return _entry(published) | {"rows": named, "ticks": ticks}


def _badge(published: PublishedFigures) -> dict[str, Any]:
    entry = _entry(published)
    return {"label": entry["name"], "text": _cut(entry["finding"], BADGE_TEXT)}


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}\u2026"


# -- templates -------------------------------------------------------------------------------------


@cache
def _templates() -> Environment:
    """Return templates that need no request: an export has none."""
    package = __package__.rpartition(".")[0]
    templates = Environment(loader=PackageLoader(package), autoescape=True)
    templates.filters.update(FILTERS)
    return templates


def _rendered(template: str, **content: Any) -> bytes:
    templates = _templates()
    parts = templates.get_template("dashboard/parts.html").module
    return templates.get_template(f"dashboard/{template}").render(parts=parts, **content).encode()


def _html(template: str, **content: Any) -> PublicFile:
    return PublicFile(_rendered(template, **content), HTML)


def _svg(template: str, **content: Any) -> PublicFile:
    return PublicFile(_rendered(template, **content), SVG)
