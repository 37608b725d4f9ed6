"""All endpoints of the HTTP API: importing a module declares those that it holds."""

from __future__ import annotations

from . import (
    audit,
    collections,
    docs,
    gateway,
    health,
    keys,
    metrics,
    queries,
    releases,
    reports,
    rows,
    shuffled_batches,
)
from .endpoint import ENDPOINTS, Api, Endpoint, blueprints

__all__ = ["ENDPOINTS", "VIEWS", "Api", "Endpoint", "blueprints"]

#: imported for their declarations
VIEWS = (
    *(reports, rows, gateway, collections, queries, releases, keys, audit, health),
    *(shuffled_batches, metrics, docs),
)
