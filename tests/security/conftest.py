"""Deployments that are attacked."""

from tests.aggregator.dashboard.conftest import deployed

__all__ = ["deployed"]
