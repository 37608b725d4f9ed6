"""The doors to a trusted curator: ask a central collection, and see what was ever released.

Nothing in here has seen a true count: what comes out of the curator was noised and paid for.
"""

from __future__ import annotations

import msgspec
from flask import Blueprint, Response, g

from veilcount_shared.collection import Model

from ..auth.api_keys import Role
from ..errors import QueryError
from ..series.series import Series
from ..service import Aggregator
from ..store.restore_lock import release_lock_reason
from .auth import Authenticator
from .collections import unknown
from .computation_gate import ComputationGate
from .json_io import answer, asked
from .problems import refusal
from .release_views import expected, made, released
from .schemas import CollectionReleases, WantedRelease


def doors(aggregator: Aggregator, authority: Authenticator, gate: ComputationGate) -> Blueprint:
    """Return the doors."""
    blueprint = Blueprint("releases", __name__)
    curator = aggregator.curator

    @blueprint.post("/v1/collections/<name>/releases")
    @authority.opens_to(Role.ANALYST)
    @gate.bounded
    def ask(name: str) -> Response:
        """Ask, or see what asking would cost."""
        wanted = asked(WantedRelease)
        series = _chosen(_named(aggregator, name), wanted.series)
        if wanted.dry_run:
            return answer(expected(series, curator.dry_run(series, _request(wanted))))
        told = curator.answer(series, _request(wanted), aggregator.instant(), g.key.id)
        return answer(made(series, told))

    @blueprint.get("/v1/collections/<name>/releases")
    @authority.opens_to(Role.ANALYST)
    def list_all(name: str) -> Response:
        """Everything that was ever released of a collection, and what is left."""
        series = [released(aggregator.store, each) for each in _central(_named(aggregator, name))]
        return answer(CollectionReleases(name, bool(release_lock_reason(aggregator.store)), series))

    return blueprint


def _named(aggregator: Aggregator, name: str) -> tuple[Series, ...]:
    """Return a collection's series, the newest first."""
    series = aggregator.known().catalog.by_name.get(name)
    if series is None:
        raise unknown()
    return series


def _chosen(series: tuple[Series, ...], fingerprint: str) -> Series:
    for each in series:
        if fingerprint in {"", each.fingerprint}:
            return each
    why = "no definition of this collection has this fingerprint: GET /v1/collections/{name}"
    raise refusal("bad-field", why, "series")


def _central(series: tuple[Series, ...]) -> list[Series]:
    found = [each for each in series if each.collection.model is Model.CENTRAL]
    if not found:
        name = series[0].collection.name
        raise QueryError("collection", name, "its model is local: read its estimate")
    return found


def _request(wanted: WantedRelease) -> dict[str, object]:
    """Return a request as the central path reads it."""
    return {
        "query": msgspec.to_builtins(wanted.query),
        "epsilon": wanted.epsilon,
        "from": wanted.first,
        "to": wanted.last,
    }
