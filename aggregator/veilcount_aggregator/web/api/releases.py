"""Endpoints of central releases: query the curator, list its releases.

No true count gets here: what the curator returns is noised and charged.
"""

from __future__ import annotations

import msgspec

from veilcount_analysis.errors import QueryError
from veilcount_analysis.series.series import Series

from ...queries.named_strings import release_candidates
from ...queries.releases import ReleaseResponse, dry_run_response, release_response, series_releases
from ...records.api_keys import Role
from ...store.restore_lock import release_lock_reason
from .collections import series_of
from .endpoint import Api, endpoint
from .problems import refusal
from .schemas import CollectionReleases, ReleaseRequest


@endpoint(
    "POST",
    "/v1/collections/{name}/releases",
    Role.ANALYST,
    takes=ReleaseRequest,
    returns=ReleaseResponse,
    problems=(
        "open-period",
        "insufficient-budget",
        "releases-locked",
        "journal-missing",
        "releases-waiting",
        "noise-unavailable",
    ),
    computes=True,
)
def create_release(api: Api, name: str, body: ReleaseRequest) -> ReleaseResponse:
    """Query the trusted curator of a central collection.

    The release is charged to the budget of each period; the same query again returns the same
    release and is free. A dry run is charged nothing and reads no data. A problem states what is
    requested, spent and remaining. Candidates name what a release of open strings holds: free.
    """
    curator, series = api.aggregator.curator, _chosen(series_of(api, name), body.series)
    candidates = release_candidates(series.collection, body.query, body.candidates)
    if body.dry_run:
        return dry_run_response(series, curator.dry_run(series, _request(body)))
    paid = curator.answer(series, _request(body), api.aggregator.instant(), api.key.id)
    return release_response(series, paid, candidates)


@endpoint(
    "GET",
    "/v1/collections/{name}/releases",
    Role.ANALYST,
    returns=CollectionReleases,
    problems=("bad-field",),
)
def list_releases(api: Api, name: str) -> CollectionReleases:
    """All releases of a central collection, and the remaining budget of each period."""
    store = api.aggregator.store
    series = [series_releases(store, one_series) for one_series in _central(series_of(api, name))]
    return CollectionReleases(name, bool(release_lock_reason(store)), series)


def _chosen(series: tuple[Series, ...], fingerprint: str) -> Series:
    for one_series in series:
        if fingerprint in {"", one_series.fingerprint}:
            return one_series
    why = "no definition of this collection has this fingerprint: GET /v1/collections/{name}"
    raise refusal("bad-field", why, "series")


def _central(series: tuple[Series, ...]) -> list[Series]:
    central = [one_series for one_series in series if one_series.collection.trust.releases]
    if not central:
        name = series[0].collection.name
        raise QueryError("collection", name, "its model is local: read its estimate")
    return central


def _request(wanted: ReleaseRequest) -> dict[str, object]:
    """Return a request as the central path reads it."""
    return {
        "query": msgspec.to_builtins(wanted.query),
        "epsilon": wanted.epsilon,
        "rho": wanted.rho,
        "from": wanted.first,
        "to": wanted.last,
    }
