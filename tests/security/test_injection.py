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

from tests.aggregator.api.deployment_fixtures import Deployment, deployment
from tests.aggregator.cli.server_fixtures import listening
from tests.aggregator.dashboard.page_fixtures import Visitor
from veilcount_aggregator import structured_logging
from veilcount_aggregator.auth.api_keys import Role
from veilcount_aggregator.cli.main import run
from veilcount_aggregator.errors import SettingsError
from veilcount_aggregator.queries.export import CSV_TYPE

ODD = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\x08\x00\u202e[red]x[/] {x} %s"
OBEYED = set("\x1b\x07\x9b\r\x08\x00\u202e\u2028")


# -- terminals -------------------------------------------------------------------------------------


@pytest.fixture
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
    "words",
    [("collections", "list"), ("collections", "close", "theme"), ("estimate", "theme"),
     ("budget", "theme"), ("compare", "theme", "arm:A", "arm:B")],
    ids=" ".join,
)  # fmt: skip
def test_no_server_response_controls_the_terminal(
    hostile: str, words: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    """Not its colours, not its title, not its directions: they are spelled out."""
    run([*words, "--url", hostile, "--key", "veilcount_admin_x"])
    message = "".join(capfd.readouterr())

    assert "owned" in message
    assert not OBEYED & set(message)


@pytest.mark.parametrize("label", ["\x1b[31m", "a\nb", "\x9b31m", "\u202etxt", "\x00", "a\u2028b"])
def test_no_key_has_a_label_that_a_terminal_obeys(deployed: Deployment, label: str) -> None:
    """Endpoint, page and command refuse it alike."""
    admin = deployed.key(Role.ADMIN)
    visitor = Visitor(deployed)
    visitor.enter(Role.ADMIN)
    visitor.get("/keys")
    by_endpoint = deployed.ask(
        "POST", "/v1/keys", json.dumps({"role": "analyst", "label": label}).encode(), key=admin
    )

    assert by_endpoint.status == 400
    assert label not in by_endpoint.body.decode()
    assert visitor.post("/keys", role="analyst", label=label).status == 422
    with pytest.raises(SettingsError):
        deployed.key(Role.ANALYST, label)


# -- spreadsheets ----------------------------------------------------------------------------------

FORMULAS = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1,1)",
    '=HYPERLINK("//x")',
]
SHEET = f"""
app = "acme-editor"
[formulas]
question = "=1+1"
values = {json.dumps(FORMULAS)}
epsilon = 1
unit = "day"
from = 2026-12-01
until = 2026-12-31
[below]
question = "-10..10?"
range = [-10, 10]
measure = "distribution"
epsilon = 1
unit = "day"
from = 2026-12-01
until = 2026-12-31
"""


@pytest.fixture(scope="module")
def sheets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment with values that are formulas, and numbers below zero; all were answered."""
    with deployment(tmp_path_factory.mktemp("sheets"), SHEET) as made:
        for name in ("formulas", "below"):
            made.verdicts(*(made.report(name) for _ in range(20)))
        yield made


def cells(deployment: Deployment, name: str) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Return the rows of a CSV file, from the endpoint and from the page."""
    key = deployment.key(Role.ANALYST)
    by_endpoint = deployment.ask(
        "GET", f"/v1/collections/{name}/estimate", key=key, environ={"HTTP_ACCEPT": CSV_TYPE}
    )
    visitor = Visitor(deployment)
    visitor.enter(Role.ANALYST)
    by_page = visitor.get(f"/collections/{name}/estimates.csv")

    assert (by_endpoint.status, by_page.status) == (200, 200)
    return [
        list(csv.DictReader(io.StringIO(text, newline="")))
        for text in (by_endpoint.body.decode(), by_page.html)
    ]  # type: ignore[return-value] # two of two


def test_no_cell_of_a_file_is_run_by_a_spreadsheet(sheets: Deployment) -> None:
    """A name that begins as a formula stands behind an apostrophe, and is whole."""
    for rows in cells(sheets, "formulas"):
        assert {row["value"] for row in rows if row["kind"] == "share"} == {
            f"'{each}" for each in FORMULAS
        }
        assert {row["question"] for row in rows} == {"'=1+1"}


def test_a_number_below_zero_stays_a_number(sheets: Deployment) -> None:
    for rows in cells(sheets, "below"):
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


FILED = """
app = "a"
[c]
question = "?"
values_file = {}
epsilon = 1
unit = "day"
from = 2026-12-01
until = 2026-12-31
"""


def test_no_definition_reads_a_file_of_the_server(deployed: Deployment, tmp_path: Path) -> None:
    """A list of values that names a path is a name, and nothing is opened for it."""
    secret = tmp_path / "secret.txt"
    secret.write_text("hush\nquiet\n")
    admin = deployed.key(Role.ADMIN)
    for place in (
        str(secret),
        "../secret.txt",
        "file:///etc/passwd",
        "/etc/passwd",
        "secret.txt\x00",
    ):
        text = FILED.format(json.dumps(place))
        reply = deployed.ask(
            "POST", "/v1/collections", json.dumps({"text": text}).encode(), key=admin
        )

        assert reply.status == 422
        assert b"hush" not in reply.body
        assert b"root:" not in reply.body
