"""`examples/` runs: each app asks, records who agreed, and nothing else; the notebook reads it."""

from __future__ import annotations

import importlib
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import requests

from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import open_store
from veilcount_client.testing import ClientHarness

from ..client.integrations.test_asgi import served
from ..client.integrations.test_privacy_pages import button
from .page_parser import ROOT
from .page_population import answered
from .page_server import Served

FOLDER = ROOT / "examples"
NOBODY = "http://127.0.0.1:9"
NOON = datetime(2026, 9, 15, 12, tzinfo=UTC)


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Load an example, as by a person who has exported the address of the server."""
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setenv("VEILCOUNT_URL", NOBODY)

    def load(name: str) -> ModuleType:
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return load


def test_the_list_of_examples_names_each() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")

    assert set(re.findall(r"^\| \[`(\w+\.py)`\]", text, re.MULTILINE)) == {
        path.name for path in FOLDER.glob("*.py")
    }


def visit(get: Callable[[str], Any], post: Callable[..., Any]) -> None:
    """Use a web app as two persons do: one declines, one agrees; then the second looks."""
    post("/theme/light")  # nobody is logged in
    for user, word in (("ben", "no"), ("ann", "yes")):
        redirect = post(f"/login/{user}")
        assert redirect.headers["Location"] == "/privacy/consent"
        page = get("/privacy/consent").text
        fields = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]+)"', page))
        post("/privacy/consent", data={**fields, "consent": button(page, word)})
        assert "dark" in post("/theme/dark").text
        assert post(f"/login/{user}").headers["Location"] == "/"
    assert "Which theme is active?" in get("/privacy/receipt").text


def test_the_flask_app(veilcount: ClientHarness, example: Callable[[str], ModuleType]) -> None:
    veilcount.consent = None
    browser = example("flask_app").create_app().test_client()
    visit(browser.get, browser.post)

    assert veilcount.recorded == [("theme", "dark")]


def test_the_fastapi_app(veilcount: ClientHarness, example: Callable[[str], ModuleType]) -> None:
    veilcount.consent = None
    with served(example("fastapi_app").app) as url, requests.Session() as session:
        visit(
            lambda path: session.get(url + path, timeout=30),
            lambda path, **options: session.post(
                url + path, timeout=30, allow_redirects=False, **options
            ),
        )

    assert veilcount.recorded == [("theme", "dark")]


def test_the_command(
    veilcount: ClientHarness,
    example: Callable[[str], ModuleType],
    capsys: pytest.CaptureFixture[str],
) -> None:
    veilcount.consent = None
    main = example("command").main
    codes = [main(line.split()) for line in ("file light", "telemetry on", "file dark")]
    veilcount.flush()

    assert [*codes, main(["telemetry", "show"])] == [0, 0, 0, 0]
    assert "converted, dark" in (printed := capsys.readouterr().out)
    assert "spent 1 of 1" in printed
    assert veilcount.recorded == [("theme", "dark")]


def test_the_command_runs_without_a_terminal(tmp_path: Path) -> None:
    """As a process, in CI, without a terminal: it does its work, and leaves no file."""
    home = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "CI": "true"}
    run = subprocess.run(
        [sys.executable, FOLDER / "command.py", "file", "dark"],
        env=os.environ | home | {"VEILCOUNT_URL": NOBODY},
        capture_output=True,
        check=True,
        text=True,
    )

    assert (run.stdout, run.stderr) == ("converted, dark\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    store = f"sqlite:///{tmp_path}/store.db"
    open_store(store, make=True).close()
    settings = Settings(store, (FOLDER / "collections.toml",))
    with closing(Served(settings, lambda: NOON)) as server:
        yield server


def test_the_cells_read_the_results(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4,000 people seven in ten use the dark theme: the interval misses it once in 20 seeds."""
    answered(server.aggregator.store, ["theme", "4000", "light=2", "dark=7", "system=1"], NOON)
    monkeypatch.setenv("VEILCOUNT_URL", server.url)
    monkeypatch.setenv("VEILCOUNT_KEY", server.key("analyst"))
    frame = runpy.run_path(str(FOLDER / "notebook.py"))["frame"]
    dark = frame[frame["of"] == "dark"].iloc[0]

    assert dark["low"] < 0.7 < dark["high"]


# -- the desktop -----------------------------------------------------------------------------------


def seen(what: str) -> dict[str, Any]:
    """Return what somebody sees on a screen that nobody looks at [Xvfb(1), -displayfd]."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-nolisten", "tcp"]
    with subprocess.Popen(command, pass_fds=[writing], stderr=subprocess.DEVNULL) as screen:
        os.close(writing)
        try:
            with os.fdopen(reading) as number:
                display = {"DISPLAY": f":{number.readline().strip()}", "VEILCOUNT_URL": NOBODY}
            user = [sys.executable, "-m", f"{__package__}.desktop_user", what]
            environment = os.environ | display
            run = subprocess.run(
                user, check=True, env=environment, cwd=ROOT, capture_output=True, timeout=120
            )
        finally:
            screen.terminate()
    assert run.stderr == b""
    shown: dict[str, Any] = json.loads(run.stdout)
    return shown


def test_the_desktop_app() -> None:
    """A dialog that is closed is no answer, and is shown again; then a yes, which is kept."""
    shown = seen("use")
    (text, *choices), again = shown["dialogs"]

    assert choices == ["Yes, count them", "No, count nothing"]
    assert again == [text, *choices]
    assert "Which theme is active?" in text
    assert "Why it is asked. To decide which theme gets our time." in text
    assert shown["recorded"] == [["theme", "dark"], ["theme", "system"]]
    assert "spent 1 of 1" in shown["receipt"]
    assert shown["is_closed"]


def test_a_dialog_stores_a_no_and_names_what_is_new_alone() -> None:
    shown = seen("decline")
    ((text, *choices),) = shown["dialogs"]

    assert shown["decided"] == [False, True, False]
    assert choices == ["Yes, count the new ones too", "Nur Altes"]
    assert "Which theme is active?" not in text
