"""Somebody at the desktop example, on the screen that DISPLAY names; prints what they saw as JSON.

A process of its own: Python aborts where a thread other than Tk's own collects what Tk has left.
"""

from __future__ import annotations

import json
import sys
import tkinter as tk
from collections.abc import Iterator
from tkinter import ttk
from typing import Any

from examples.desktop import Editor

from veilcount_client.integrations.tk import ask
from veilcount_client.testing import ClientHarness

from ..client.integrations.running_campaign import COLLECTIONS


def all_below(widget: tk.Misc) -> Iterator[tk.Misc]:
    for child in widget.winfo_children():
        yield child
        yield from all_below(child)


def buttons(widget: tk.Misc) -> dict[str, ttk.Button | ttk.Radiobutton]:
    """Return the buttons in a window by their texts."""
    return {
        str(button["text"]): button
        for button in all_below(widget)
        if isinstance(button, ttk.Button | ttk.Radiobutton)
    }


def text_of(widget: tk.Misc) -> str:
    (box,) = (child for child in all_below(widget) if isinstance(child, tk.Text))
    return box.get("1.0", "end")


def answer_next(window: tk.Tk, choice: str, dialogs: list[Any]) -> None:
    """Answer the dialog that opens next by a button, or by Escape; keep its texts."""

    def look() -> None:
        children = [child for child in window.winfo_children() if isinstance(child, tk.Toplevel)]
        if not children or not children[0].winfo_viewable():
            window.after(20, look)
            return
        (dialog,) = children
        dialogs.append([text_of(dialog), *buttons(dialog)])
        if choice in buttons(dialog):
            buttons(dialog)[choice].invoke()
        else:
            dialog.focus_force()  # there is no window manager
            dialog.update()
            dialog.event_generate(choice)

    window.after(20, look)


def use(harness: ClientHarness, window: tk.Tk) -> dict[str, Any]:
    """Close the dialog of the first choice, agree in that of the second, look at the receipt."""
    editor, dialogs = Editor(window), list[Any]()
    for theme, answer in (("light", "<Escape>"), ("dark", "Yes, count them"), ("system", "")):
        if answer:
            answer_next(window, answer, dialogs)
        buttons(editor)[theme].invoke()
    harness.flush()
    buttons(editor)["What was sent about me"].invoke()
    receipt = text_of(window)
    editor.quit()
    is_closed = editor.statistics._session.is_closed
    return {"dialogs": dialogs, "receipt": receipt, "is_closed": is_closed}


def decline_what_is_new(harness: ClientHarness, window: tk.Tk) -> dict[str, Any]:
    """Answer a dialog in an app's own words, on a question that came after a yes."""
    client, dialogs = harness.client(COLLECTIONS), list[Any]()
    client.consent(True, only=["theme"])
    answer_next(window, "Nur Altes", dialogs)
    answer = ask(window, client, messages={"consent_no_new": "Nur Altes"}, language="de")
    decided = [answer, client.consented, client.must_ask]
    return {"dialogs": dialogs, "decided": decided}


def main() -> None:
    """Do what the first argument names."""
    with ClientHarness(consent=None) as harness:
        shown = {"use": use, "decline": decline_what_is_new}[sys.argv[1]](harness, tk.Tk())
        print(json.dumps(shown | {"recorded": harness.recorded}))


if __name__ == "__main__":
    main()
