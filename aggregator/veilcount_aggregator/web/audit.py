"""The door to the audit log: who changed what."""

from __future__ import annotations

from dataclasses import asdict

from flask import Blueprint, Response

from ..aggregator import Aggregator
from ..audit import log
from ..keys import Role
from .answering import answer
from .authority import Authority
from .messages import Act, Acts


def doors(aggregator: Aggregator, authority: Authority) -> Blueprint:
    """Return the door."""
    blueprint = Blueprint("audit", __name__)

    @blueprint.get("/v1/audit")
    @authority.opens_to(Role.ADMIN)
    def list_all() -> Response:
        """What operators did, the oldest first. Nothing of a device is in it."""
        return answer(Acts([Act(**asdict(entry)) for entry in log(aggregator.store)]))

    return blueprint
