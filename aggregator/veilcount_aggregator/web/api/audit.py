"""Endpoint of the audit log."""

from __future__ import annotations

from ...records.api_keys import Role
from ...records.audit_log import load_audit_log
from .endpoint import Api, endpoint
from .schemas import AuditLog


@endpoint("GET", "/v1/audit", Role.ADMIN, returns=AuditLog)
def show_audit_log(api: Api) -> AuditLog:
    """Actions of operators, the oldest first. It holds nothing about devices."""
    return AuditLog(load_audit_log(api.aggregator.store))
