"""A query of a collection is declared once: its endpoint, its command and its JSON follow."""

from __future__ import annotations

from typing import Any

import click
import pytest

from veilcount_aggregator.operate.cli.main import veilcount
from veilcount_aggregator.queries import COLLECTION_QUERIES, CollectionQuery, plain
from veilcount_aggregator.web.api.endpoint import ENDPOINTS
from veilcount_analysis.query_params import params

from ..web.api.deployment_fixtures import Deployment
from .simulated_reports import snapshot

PARAMETERS = {"compare": {"a": ["arm:A"], "b": ["arm:B"]}}

each_query = pytest.mark.parametrize("declared", COLLECTION_QUERIES, ids=lambda query: query.name)


@each_query
def test_the_endpoint_and_the_command_take_the_declared_parameters(
    declared: CollectionQuery[Any, Any],
) -> None:
    path = f"/v1/collections/{{name}}/{declared.name}"
    (endpoint,) = (endpoint for endpoint in ENDPOINTS if endpoint.path == path)
    command = veilcount.get_command(click.Context(veilcount), declared.name)
    assert command is not None
    names = {(option.name or "").rstrip("_") for option in command.params}

    assert (endpoint.takes, endpoint.returns) == (declared.takes, declared.returns)
    assert endpoint.description == " ".join(declared.description.split())
    assert {param.name for param in params(declared.takes)} <= names


@each_query
def test_a_result_is_the_same_after_its_json(
    declared: CollectionQuery[Any, Any], stocked: Deployment
) -> None:
    result = declared.run(snapshot(stocked), "theme", PARAMETERS.get(declared.name, {}))

    assert plain(declared.decode(plain(result))) == plain(result)
