"""What is shown outside of pages: on a terminal, in a spreadsheet, in a log."""

from __future__ import annotations

import csv
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask, Response

from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.queries.export import CSV_TYPE
from veilcount_aggregator.records.api_keys import Role
from veilcount_serving import structured_logging
from veilcount_serving.errors import SettingsError

from ..aggregator.operate.cli.server_fixtures import listening
from ..aggregator.web.api.deployment_fixtures import Deployment
from ..aggregator.web.dashboard.page_fixtures import logged_in

ODD = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\x08\x00\u202e[red]x[/] {x} %s"
OBEYED = set("\x1b\x07\x9b\r\x08\x00\u202e\u2028")


# -- terminals -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile() -> Iterator[str]:
    """A server that means ill to whoever asks it: each of its texts holds what terminals obey."""
    app = Flask(__name__)
    line = dict.fromkeys(("name", "fingerprint", "question", "unit", "from", "until"), ODD)
    epsilon = dict.fromkeys(("event", "day", "user", "adjacency"), ODD)

    @app.get("/v1/collections")
    def collections() -> dict[str, object]:
        return {"collections": [line | {"epsilon": epsilon, "closed": False, "series": 1}]}

    @app.post("/v1/collections/<_>/close")
    def close(_: str) -> Response:
        return Response(json.dumps({"title": ODD, "detail": ODD}), 422)

    @app.errorhandler(404)
    def refuse(_: Exception) -> Response:
        return Response(json.dumps({"title": "No\n" + ODD, "detail": "No\n" + ODD}), 404)

    with listening(app.wsgi_app) as url:
        yield url


@pytest.mark.parametrize(
    "command",
    ["collections list", "collections close theme", "estimate theme", "compare theme arm:A arm:B"],
)
def test_no_server_response_controls_the_terminal(
    hostile: str, command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not its colours, not its title, not its directions: they are spelled out."""
    run([*command.split(), "--url", hostile, "--key", "veilcount_admin_x"])
    message = "".join(capfd.readouterr())

    assert "owned" in message
    assert not OBEYED & set(message)


def test_no_key_has_a_label_that_a_terminal_obeys(deployed: Deployment) -> None:
    admin, visitor = deployed.key(Role.ADMIN), logged_in(deployed, Role.ADMIN, "/keys")
    for label in ("\x1b[31m", "a\nb", "\x9b31m", "\u202etxt", "\x00", "a\u2028b"):
        body = json.dumps({"role": "analyst", "label": label}).encode()
        by_endpoint = deployed.ask("POST", "/v1/keys", body, key=admin)

        assert by_endpoint.status == 400
        assert label not in by_endpoint.body.decode()
        assert visitor.post("/keys", role="analyst", label=label).status == 422
        with pytest.raises(SettingsError):
            deployed.key(Role.ANALYST, label)


FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "@SUM(1,1)", '=LINK("//x")']
TERMS = 'epsilon = 1\nunit = "day"\nfrom = 2026-12-01\nuntil = 2026-12-31'
SHEET = f"""
app = "acme-editor"
[formulas]
question = "=1+1"
values = {json.dumps(FORMULAS)}
{TERMS}
[below]
question = "-10..10?"
range = [-10, 10]
measure = "distribution"
{TERMS}
"""


def cells(deployment: Deployment, name: str) -> Iterator[list[dict[str, str]]]:
    """Yield the rows of a CSV file, from the endpoint and from the page; all were answered."""
    deployment.verdicts(*(deployment.report(name) for _ in range(20)))
    path, key = f"/v1/collections/{name}/estimate", deployment.key(Role.ANALYST)
    by_endpoint = deployment.ask("GET", path, key=key, environ={"HTTP_ACCEPT": CSV_TYPE})
    by_page = logged_in(deployment).get(f"/collections/{name}/estimates.csv")

    assert (by_endpoint.status, by_page.status) == (200, 200)
    for text in (by_endpoint.body.decode(), by_page.html):
        yield list(csv.DictReader(io.StringIO(text, newline="")))


def test_no_cell_is_run_by_a_spreadsheet_and_numbers_stay(deployed: Deployment) -> None:
    """A name that begins as a formula stands behind an apostrophe, and is whole."""
    deployed.push(SHEET)
    quoted = {f"'{each}" for each in FORMULAS}
    for rows in cells(deployed, "formulas"):
        assert {row["value"] for row in rows if row["kind"] == "share"} == quoted
        assert {row["question"] for row in rows} == {"'=1+1"}
    for rows in cells(deployed, "below"):
        lows = [row["low"] for row in rows if row["kind"] == "quantile"]

        assert any(low.startswith("-") and float(low) < 0 for low in lows)


# -- logs ------------------------------------------------------------------------------------------


def test_a_line_of_the_log_is_one_line_whatever_it_holds() -> None:
    """What an operator set, or a store said of itself, may hold anything."""
    text = f'{ODD}\n"}}\n{{"event": "planted"}}\u2028\x85'
    record = logging.makeLogRecord(
        {"name": structured_logging.NAME, "msg": "store", "veilcount_fields": {"why": text}}
    )
    line = structured_logging.JsonFormatter().format(record)

    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["why"] == text
    assert json.loads(line)["event"] == "store"


def test_no_definition_reads_a_file_of_the_server(deployed: Deployment, tmp_path: Path) -> None:
    """A list of values that names a path is a name, and nothing is opened for it."""
    secret = tmp_path / "secret.txt"
    secret.write_text("hush\nquiet\n")
    admin = deployed.key(Role.ADMIN)
    for place in (
        f"{secret}",
        "../secret.txt",
        "file:///etc/passwd",
        "/etc/passwd",
        "secret.txt\0",
    ):
        text = f'app = "a"\n[c]\nquestion = "?"\nvalues_file = {json.dumps(place)}\n{TERMS}\n'
        body = json.dumps({"text": text}).encode()
        reply = deployed.ask("POST", "/v1/collections", body, key=admin)

        assert reply.status == 422
        assert b"hush" not in reply.body
        assert b"root:" not in reply.body
