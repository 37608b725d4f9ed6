"""The door to the audit log: who changed what."""

from __future__ import annotations

from dataclasses import asdict

from flask import Blueprint, Response

from ..auth.api_keys import Role
from ..auth.audit_log import load_audit_log
from ..service import Aggregator
from .auth import Authenticator
from .json_io import answer
from .schemas import Act, Acts


def doors(aggregator: Aggregator, authority: Authenticator) -> Blueprint:
    """Return the door."""
    blueprint = Blueprint("audit", __name__)

    @blueprint.get("/v1/audit")
    @authority.opens_to(Role.ADMIN)
    def list_all() -> Response:
        """What operators did, the oldest first. Nothing of a device is in it."""
        return answer(Acts([Act(**asdict(entry)) for entry in load_audit_log(aggregator.store)]))

    return blueprint
