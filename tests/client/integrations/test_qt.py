"""The Qt dialog, by each binding that is installed; the script next to it runs it with both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest

from veilcount_client.integrations import qt

YES, NO, OLD = "Yes, count them", "No, count nothing", "Nur Altes"
BINDINGS = [
    pytest.param(name, marks=pytest.mark.skipif(find_spec(name) is None, reason=f"no {name}"))
    for name in qt.BINDINGS
]


def seen(binding: str, *words: str) -> dict[str, Any]:
    """Run a script with the offscreen platform, in a process of its own; return its output."""
    command = [sys.executable, "-m", f"{__package__}.qt_user", binding, *words]
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen"}
    run = subprocess.run(command, check=True, env=environment, capture_output=True, timeout=120)
    shown: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return shown


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize(
    ("choice", "decided"),
    [
        (YES, [True, True, False]),
        (NO, [False, False, False]),
        ("Escape", [None, None, True]),
        ("Return", [None, None, True]),  # chooses neither; then the window is closed
    ],
)
def test_an_answer_is_stored_and_a_closed_window_is_none(
    binding: str, choice: str, decided: list[bool | None]
) -> None:
    shown = seen(binding, choice)
    ((text, *buttons),) = shown["dialogs"]

    assert shown["decided"] == decided
    assert buttons == [YES, NO]
    assert "Which theme is active?" in text


@pytest.mark.parametrize("binding", BINDINGS)
def test_only_new_questions_are_in_the_dialog(binding: str) -> None:
    shown = seen(binding, OLD, "theme")
    ((text, *buttons),) = shown["dialogs"]

    assert shown["decided"] == [False, True, False]
    assert buttons == ["Yes, count the new ones too", OLD]
    assert "Which theme is active?" not in text


def test_without_a_binding_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in qt.BINDINGS:
        for module in (name, f"{name}.QtWidgets"):
            monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(ModuleNotFoundError, match="PySide6 or PyQt6: install one of them"):
        qt.ask(None, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("tag", qt.FORMS)
def test_a_text_is_no_markup(tag: str) -> None:
    """A definition's question is shown as it is written."""
    assert "<i>" not in qt._html("Is <i> & so?\n", tag)
    assert "&lt;i&gt; &amp; so?" in qt._html("Is <i> & so?\n", tag)
