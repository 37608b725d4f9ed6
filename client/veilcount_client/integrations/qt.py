"""Qt: a dialog that asks for consent, in the words of the consent page, by PySide6 or PyQt6.

if client.must_ask:
    ask(window, client)
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from html import escape
from importlib import import_module
from typing import Any

from veilcount_shared.notice import Texts

from ..client import Client
from ..recording import receipt_messages
from .dialog_texts import HEADING, PLAIN, STRONG, pieces

BINDINGS = ("PySide6", "PyQt6")
WIDTH, HEIGHT = 560, 480
CLOSED, YES, NO = 0, 1, 2  # Qt's result of a dialog that is closed, and those of the buttons
FORMS = {HEADING: "<h3>{}</h3>", STRONG: "<b>{}</b>", PLAIN: "{}<br>"}


def ask(
    parent: Any,
    client: Client,
    *,
    messages: Mapping[str, object] | None = None,
    language: str = "en",
) -> bool | None:
    """Show the questions that are not decided, and store the answer; return it.

    None: the window was closed, which is no answer. Neither button is chosen beforehand, and both
    look alike. `parent` is a widget, or None. `messages` replaces texts, by the keys of
    `receipt_messages.MESSAGES`.
    """
    widgets = _widgets()
    words = Texts(messages, receipt_messages.MESSAGES)
    names, ending = client.unasked(), "_new" if client.consented else ""
    dialog = widgets.QDialog(parent)
    dialog.setWindowTitle(words("consent_title"))
    dialog.resize(WIDTH, HEIGHT)
    text = widgets.QTextBrowser()
    text.setHtml("".join(_html(*piece) for piece in pieces(client, names, words, language)))
    buttons = widgets.QHBoxLayout()
    for key, result in ((f"consent_yes{ending}", YES), (f"consent_no{ending}", NO)):
        button = widgets.QPushButton(words(key))
        button.setAutoDefault(False)  # Enter chooses neither
        button.clicked.connect(partial(_end, dialog, result))
        buttons.addWidget(button)
    layout = widgets.QVBoxLayout(dialog)
    layout.addWidget(text)
    layout.addLayout(buttons)
    text.setFocus()  # to scroll by keys
    result = dialog.exec()
    dialog.deleteLater()
    if result == CLOSED:
        return None
    client.consent(result == YES, only="new")
    return bool(result == YES)


def _end(dialog: Any, result: int, _checked: bool = False) -> None:  # noqa: FBT001, FBT002 - Qt's
    dialog.done(result)


def _html(text: str, tag: str) -> str:
    return FORMS[tag].format(escape(text).replace("\n", ""))


def _widgets() -> Any:
    """Return the widgets of the binding that the app has imported, else of one that is there."""
    loaded = (name for name in BINDINGS if f"{name}.QtWidgets" in sys.modules)
    for name in (*loaded, *BINDINGS):
        try:
            return import_module(f"{name}.QtWidgets")
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError(f"the dialog needs {' or '.join(BINDINGS)}: install one of them")
