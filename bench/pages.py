"""What the pages of the dashboard cost: CPU of each at its first view and again, the worst first.

Collections of every kind with reports over months. Another store's pages are viewed before, since
a server's first one imports what the others need.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from pathlib import Path

from tests.aggregator.web.api.deployment_fixtures import CENTRAL, FILE, Deployment, deployment
from tests.aggregator.web.dashboard.page_fixtures import logged_in
from tests.browser.browser_population import NOW, stock

from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.web.dashboard.pages import COLLECTION, served_pages

from .stopwatch import timed
from .table import Row, Table, figure

NOTES = (
    "CPU milliseconds of one request without its way through a server: the first of a collection,",
    "  and the next. Of each page the collection whose first view is the dearest.",
)

View = tuple[float, float, str, str]  # milliseconds of the first and the next, page, collection


def run(*, quick: bool) -> Table:
    """View every page of every collection, twice."""
    del quick  # it takes seconds
    with tempfile.TemporaryDirectory() as name:
        with deployment(Path(name), FILE, CENTRAL) as other:
            _views(other)
        folder = Path(name) / "stocked"
        folder.mkdir()
        with deployment(folder, now=NOW) as made:
            stock(made)
            made.aggregator.flush()
            views = _views(made)
    return Table("pages: what a view of the dashboard costs", list(_rows(views)), NOTES)


def _views(made: Deployment) -> list[View]:
    """View each page that an administrator may open and that these collections have."""
    visitor, views = logged_in(made, Role.ADMIN), []
    names = list(made.aggregator.known().catalog.by_name)
    for page in served_pages(live=False):
        if page.role is None or page.methods != ("GET",) or "<form>" in page.rule:
            continue
        for name in names if page.of_collection else ("",):
            path = page.rule.replace(COLLECTION, name)
            ms = []
            for _ in "12":
                us, shown = timed(visitor.get, path)
                ms.append(us / 1e3)
            if shown.status == HTTPStatus.OK:
                views.append((ms[0], ms[1], page.name, name))
    return sorted(views, reverse=True)


def _rows(views: Sequence[View]) -> Iterator[Row]:
    dearest = {page: view for view in reversed(views) for page in [view[2]]}
    for first, again, page, name in sorted(dearest.values(), reverse=True):
        where = f"{page} {name}".strip()
        yield figure("first view, ms", first, where)
        yield figure("next view, ms", again, where)
