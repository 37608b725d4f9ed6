"""Somebody at the Qt dialog, by the binding that the first argument names; prints JSON.

The second argument is what they do: a button's text, or Escape or Enter, after which they close it.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

from veilcount_client.integrations.qt import ask
from veilcount_client.testing import ClientHarness

from .running_campaign import COLLECTIONS


def act(widgets: Any, core: Any, choice: str, dialogs: list[list[str]]) -> None:
    """Keep the texts of the dialog, then do what is chosen."""
    dialog = widgets.QApplication.activeModalWidget()
    buttons = {button.text(): button for button in dialog.findChildren(widgets.QPushButton)}
    dialogs.append([dialog.findChild(widgets.QTextBrowser).toPlainText(), *buttons])
    if choice in buttons:
        buttons[choice].click()
        return
    keys, kinds = core.Qt.Key, core.QEvent.Type
    event = import_module(f"{sys.argv[1]}.QtGui").QKeyEvent(
        kinds.KeyPress, getattr(keys, f"Key_{choice}"), core.Qt.KeyboardModifier.NoModifier
    )
    widgets.QApplication.sendEvent(dialog, event)
    dialog.close()


def main() -> None:
    """Answer two questions at once, or one that came after a yes to the other."""
    binding, choice, agreed = sys.argv[1], sys.argv[2], sys.argv[3:]
    widgets, core = (import_module(f"{binding}.{name}") for name in ("QtWidgets", "QtCore"))
    application, dialogs = widgets.QApplication([]), list[list[str]]()
    window = widgets.QMainWindow()
    with ClientHarness(consent=None) as harness:
        client = harness.client(COLLECTIONS)
        if agreed:
            client.consent(True, only=agreed)
        core.QTimer.singleShot(50, lambda: act(widgets, core, choice, dialogs))
        answer = ask(window, client, messages={"consent_no_new": "Nur Altes"})
        decided = [answer, client.consented, client.must_ask]
        print(json.dumps({"dialogs": dialogs, "decided": decided, "binding": binding}))
    del application


if __name__ == "__main__":
    main()
