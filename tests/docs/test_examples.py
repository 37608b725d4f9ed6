"""`examples/` runs: each app asks, records who agreed, and nothing else; the notebook reads it."""

from __future__ import annotations

import importlib
import os
import re
import runpy
import subprocess
import sys
import tkinter as tk
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from tkinter import ttk
from types import ModuleType
from typing import Any

import pytest
import requests

from veilcount_aggregator.store import open_store
from veilcount_client.integrations.tk import ask
from veilcount_client.testing import ClientHarness

from ..client.integrations.running_campaign import COLLECTIONS
from ..client.integrations.test_asgi import served
from ..client.integrations.test_privacy_pages import button
from .page_parser import ROOT
from .page_population import answered
from .page_server import Served, Settings

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
        asked = post(f"/login/{user}")
        assert asked.headers["Location"] == "/privacy/consent"
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


def test_the_command_runs_where_nobody_is_asked(tmp_path: Path) -> None:
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


def test_the_notebook(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4,000 people seven in ten use the dark theme: the interval misses it once in 20 seeds."""
    answered(server.aggregator.store, ["theme", "4000", "light=2", "dark=7", "system=1"], NOON)
    monkeypatch.setenv("VEILCOUNT_URL", server.url)
    monkeypatch.setenv("VEILCOUNT_KEY", server.key("analyst"))
    frame = runpy.run_path(str(FOLDER / "notebook.py"))["frame"]
    dark = frame[frame["of"] == "dark"].iloc[0]

    assert dark["low"] < 0.7 < dark["high"]


# -- the desktop -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def screen() -> Iterator[str]:
    """The name of a screen that nobody looks at [Xvfb(1), -displayfd]; Tk leaves none it is on."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-nolisten", "tcp"]
    process = subprocess.Popen(command, pass_fds=[writing], stderr=subprocess.DEVNULL)
    os.close(writing)
    try:
        with os.fdopen(reading) as number:
            yield f":{number.readline().strip()}"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def window(screen: str) -> Iterator[tk.Tk]:
    """A window on that screen."""
    window = tk.Tk(screen)
    yield window
    with suppress(tk.TclError):  # it was closed
        window.destroy()


def all_below(widget: tk.Misc) -> Iterator[tk.Misc]:
    for child in widget.winfo_children():
        yield child
        yield from all_below(child)


def buttons(widget: tk.Misc) -> dict[str, ttk.Button]:
    """Return the buttons in a window by their texts."""
    return {str(b["text"]): b for b in all_below(widget) if isinstance(b, ttk.Button)}


def answer_next(window: tk.Tk, text: str, seen: list[str]) -> None:
    """Answer the dialog that opens next by a button, or by Escape; keep what it says."""

    def look() -> None:
        dialogs = [child for child in window.winfo_children() if isinstance(child, tk.Toplevel)]
        if not dialogs or not dialogs[0].winfo_viewable():
            window.after(20, look)
            return
        (dialog,) = dialogs
        (box,) = (child for child in all_below(dialog) if isinstance(child, tk.Text))
        seen.append(box.get("1.0", "end"))
        choices = buttons(dialog)
        seen.extend(choices)
        if text in choices:
            choices[text].invoke()
        else:
            dialog.focus_force()  # there is no window manager
            dialog.update()
            dialog.event_generate(text)

    window.after(20, look)


def test_the_desktop_app(
    veilcount: ClientHarness, example: Callable[[str], ModuleType], window: tk.Tk
) -> None:
    """A dialog that is closed is no answer, and asks again; then a yes, which is kept."""
    veilcount.consent = None
    editor = example("desktop").Editor(window)
    seen: list[str] = []
    for theme, answer in (("light", "<Escape>"), ("dark", "Yes, count them"), ("system", "")):
        if answer:
            answer_next(window, answer, seen)
        (radio,) = (
            widget
            for widget in all_below(editor)
            if isinstance(widget, ttk.Radiobutton) and str(widget["text"]) == theme
        )
        radio.invoke()
    veilcount.flush()
    buttons(editor)["What was sent about me"].invoke()
    (receipt,) = (w for w in all_below(window) if isinstance(w, tk.Text))
    shown = receipt.get("1.0", "end")
    editor.quit()

    assert seen[1:3] == seen[4:6] == ["Yes, count them", "No, count nothing"]
    assert "Which theme is active?" in seen[0]
    assert "Why it is asked. To decide which theme gets our time." in seen[0]
    assert veilcount.recorded == [("theme", "dark"), ("theme", "system")]
    assert "spent 1 of 1" in shown
    assert editor.statistics._session.is_closed


def test_a_dialog_stores_a_no_and_asks_what_is_new_alone(
    veilcount: ClientHarness, window: tk.Tk
) -> None:
    veilcount.consent = None
    client = veilcount.client(COLLECTIONS)
    client.consent(True, only=["theme"])
    seen: list[str] = []
    answer_next(window, "Nur Altes", seen)
    given = ask(window, client, messages={"consent_no_new": "Nur Altes"}, language="de")

    assert given is False
    assert seen[1:] == ["Yes, count the new ones too", "Nur Altes"]
    assert "Which theme is active?" not in seen[0]
    assert (client.consented, client.must_ask) == (True, False)
