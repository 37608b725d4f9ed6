"""The report of a collection: one document that needs no server, to read, print and keep.

It is made of the parts of the collection's tabs, without their controls and links.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

from flask import Flask, Response, render_template

from veilcount_analysis.privacy.shuffled import full_notice
from veilcount_analysis.text.privacy_guarantees import epsilons

from ...queries import Snapshot
from ...queries.releases import series_releases
from . import formatting
from .collection.definition_history import definition_history
from .collection.page import collection_content
from .layout import STYLE, asset
from .pages import HEADERS, NAME, PAGES, POLICY, STYLES, Content, Context, page, render
from .releases.view import release_entry


@page("/collections/<name>/report", computes=True)
def report(context: Context, name: str) -> Response:
    """Show the report of a collection; the policy of the page allows its own style."""
    content = _content(context.aggregator.snapshot(), name)
    response = render("report", **content)
    digest = b64encode(sha256(content["style"].encode()).digest()).decode()
    response.headers[POLICY] = HEADERS[POLICY].replace(STYLES, f"style-src 'sha256-{digest}'")
    return response


def report_document(snapshot: Snapshot, name: str) -> str:
    """Return the report of a collection as HTML, without a server."""
    app = Flask(__name__)
    app.jinja_env.filters.update(formatting.FILTERS)
    for declared in PAGES.values():  # the parts name the addresses of pages; the report shows none
        app.add_url_rule(declared.rule, f"{NAME}.{declared.name}")
    with app.test_request_context():
        parts = app.jinja_env.get_template("dashboard/parts.html").module
        content = _content(snapshot, name)
        return render_template("dashboard/report.html", parts=parts, name=name, **content)


def _content(snapshot: Snapshot, name: str) -> Content:
    series = snapshot.named(name)
    collection = series[0].collection
    released = series_releases(snapshot.store, series[0]).releases
    return {
        **collection_content(snapshot, series, {}),
        "printed": True,
        "style": asset(STYLE).body.decode(),
        "question": collection.question,
        "today": snapshot.today,
        "releases": [release_entry(place, entry) for place, entry in enumerate(released, 1)][::-1]
        if collection.trust.releases
        else [],
        "epsilon": epsilons(collection),
        "notice": full_notice(collection).texts(),
        "definitions": definition_history(snapshot, series),
    }
