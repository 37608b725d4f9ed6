"""A gateway in front of any WSGI application, with keys of a test."""

from __future__ import annotations

from collections.abc import Sequence
from wsgiref.types import WSGIApplication

from veilcount_aggregator.records.gateway_keys import GatewayKey
from veilcount_aggregator.records.service_counters import ServiceCounters
from veilcount_aggregator.web.api.gateway import GatewayEndpoint, WsgiGateway
from veilcount_aggregator.web.api.reports import DeviceProblems
from veilcount_aggregator.web.api.request_metrics import RequestMetrics
from veilcount_serving.request_ids import OWN_IDS
from veilcount_serving.structured_logging import FaultLog


def gateway_endpoint(
    keys: Sequence[GatewayKey], counters: ServiceCounters | None = None
) -> GatewayEndpoint:
    """Return the endpoint; `counters` take what it counts."""
    secrets = {key.key_id: key.secret for key in keys}
    metrics = RequestMetrics(counters or ServiceCounters(lambda: 0.0))
    return GatewayEndpoint(lambda: secrets, metrics, DeviceProblems(FaultLog(), OWN_IDS))


def wsgi_gateway(onward: WSGIApplication, keys: Sequence[GatewayKey]) -> WsgiGateway:
    """Return a gateway that hands requests on to an application."""
    return WsgiGateway(onward, gateway_endpoint(keys))
