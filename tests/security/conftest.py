"""Deployments that are attacked."""

from ..aggregator.web.dashboard.conftest import deployed

__all__ = ["deployed"]
