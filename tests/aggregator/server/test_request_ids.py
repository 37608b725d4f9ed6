"""Ids of requests: random, in problem documents and log lines, and of no accepted report."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID, uuid4

import pytest

from veilcount_aggregator.errors import StoreUnavailable
from veilcount_aggregator.web.api.reports import ReportsEndpoint
from veilcount_serving import request_ids
from veilcount_serving.request_ids import ENVIRON_NAME, RequestIds
from veilcount_serving.structured_logging import configure_logging, log_event
from veilcount_shared.report import Batch

from ..web.api.deployment_fixtures import FILE, Deployment, Response, deployment
from ..web.dashboard.page_fixtures import logged_in
from .test_relayed import Worker

CHOSEN = "01234567-89ab-4def-8123-456789abcdef"
PATHS = (
    ("POST", "/v1/reports"),
    ("POST", "/v1/ohttp"),
    ("GET", "/v1/nowhere"),
    ("GET", "/v1/keys"),
)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(tmp_path, FILE) as deployed:
        yield deployed


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(tmp_path, FILE, proxy_request_ids=True) as deployed:
        yield deployed


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    configure_logging(stream)
    yield stream
    configure_logging(io.StringIO())


def refused(made: Deployment, method: str, path: str, sent: str = CHOSEN) -> str:
    """Return the id in the problem document of a request that gives one itself."""
    reply = made.ask(method, path, b"nothing", environ={ENVIRON_NAME: sent})
    return name_of(reply)


def name_of(reply: Response) -> str:
    assert reply.problem
    prefix, _, name = reply.json["instance"].rpartition(":")
    assert prefix == "urn:uuid"
    return str(name)


def obeys(_: RequestIds, header: str | None) -> str:
    """Stand for a server that takes whatever id a client gives."""
    return header or ""


@pytest.mark.parametrize(("method", "path"), PATHS)
@pytest.mark.parametrize(
    ("planted", "chosen"),
    [(nullcontext(), False), (patch.object(RequestIds, "choose", obeys), True)],
)
def test_a_device_cannot_choose_the_id_of_its_request(
    made: Deployment,
    method: str,
    path: str,
    planted: AbstractContextManager[object],
    *,
    chosen: bool,
) -> None:
    with planted:
        names = [refused(made, method, path) for _ in range(3)]

    assert (CHOSEN in names) is chosen
    assert (len({*names}) == 3) is not chosen
    assert all(name == CHOSEN or UUID(name).version == 4 for name in names)


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_the_id_is_the_proxys_where_the_operator_says_so(
    proxied: Deployment, method: str, path: str
) -> None:
    assert refused(proxied, method, path) == CHOSEN


@pytest.mark.parametrize(
    "sent", ["", "7", CHOSEN.upper(), CHOSEN + "0", 'a" ' + CHOSEN, "é" * 36, UUID(CHOSEN).hex]
)
def test_what_is_no_id_of_the_proxy_is_not_taken(proxied: Deployment, sent: str) -> None:
    assert refused(proxied, "POST", "/v1/reports", sent) != sent


def test_a_fault_has_one_id_in_its_problem_document_and_in_its_log_line(
    made: Deployment, log: io.StringIO
) -> None:
    """Of a report, which is answered in front of Flask, and of an analyst's request."""
    store = type(made.aggregator.store)
    with patch.object(store, "commit", side_effect=StoreUnavailable("away")):
        report = made.send(Batch((made.report("alone"),)))
    with patch.object(store, "records", side_effect=StoreUnavailable("gone")):
        keys = made.ask("GET", "/v1/ohttp-keys")
    lines = [json.loads(line) for line in log.getvalue().splitlines()]

    assert [line["request"] for line in lines] == [name_of(report), name_of(keys)]


def test_a_page_that_failed_shows_the_id_of_its_log_line(
    made: Deployment, log: io.StringIO
) -> None:
    visitor = logged_in(made)
    with patch.object(type(made.aggregator.store), "shards", side_effect=RuntimeError):
        page = visitor.get("/operations")
    (line,) = map(json.loads, log.getvalue().splitlines())

    assert page.status == 500
    assert line["request"] in page.text


def logs_each(endpoint: ReportsEndpoint, *response: Any) -> Any:
    """Stand for an endpoint that names every request."""
    log_event("answered", request=RequestIds().choose(None))
    return RESPOND(endpoint, *response)


RESPOND = ReportsEndpoint.respond


@pytest.mark.parametrize(
    ("planted", "lines"),
    [(nullcontext(), 0), (patch.object(ReportsEndpoint, "respond", logs_each), 3)],
)
def test_an_accepted_report_has_no_id_and_leaves_no_line(
    proxied: Deployment,
    log: io.StringIO,
    planted: AbstractContextManager[object],
    lines: int,
) -> None:
    """In any way that it comes, whatever id the proxy gives."""
    worker = Worker(proxied)
    with planted, patch.object(request_ids, "uuid4", wraps=uuid4) as drawn:
        over_wsgi = proxied.send(Batch((proxied.report("alone"),)), environ={ENVIRON_NAME: CHOSEN})
        on_loop = worker.run(lambda: worker.direct(worker.body()))
        relayed = worker.run(lambda: worker.relayed(worker.body()))

    assert [over_wsgi.status, on_loop.status, relayed.status] == [200] * 3
    assert len(log.getvalue().splitlines()) == drawn.call_count == lines


def test_no_id_is_stored(proxied: Deployment, tmp_path: Path) -> None:
    """Neither of an accepted report nor of a refused one."""
    headers = {ENVIRON_NAME: CHOSEN}
    proxied.send(Batch((proxied.report("alone"),)), environ=headers)
    assert refused(proxied, "POST", "/v1/reports") == CHOSEN
    proxied.aggregator.flush()
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.is_file())

    assert CHOSEN.encode() not in written
    assert UUID(CHOSEN).bytes not in written
