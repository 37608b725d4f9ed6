"""Tk: a dialog that asks for consent, in the words of the consent page.

if client.must_ask:
    ask(window, client)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from veilcount_shared.notice import Texts

from ..client import Client
from ..recording import receipt_messages
from .dialog_texts import HEADING, STRONG, pieces

if TYPE_CHECKING:
    import tkinter as tk

LINES, WIDTH = 20, 76


def ask(
    parent: tk.Misc,
    client: Client,
    *,
    messages: Mapping[str, object] | None = None,
    language: str = "en",
) -> bool | None:
    """Show the questions that are not decided, and store the answer; return it.

    None: the window was closed, which is no answer. Neither button is chosen beforehand, and both
    look alike. `messages` replaces texts, by the keys of `receipt_messages.MESSAGES`.
    """
    import tkinter as tk  # noqa: PLC0415 - systems have it apart from Python
    from tkinter import scrolledtext, ttk  # noqa: PLC0415

    words = Texts(messages, receipt_messages.MESSAGES)
    names, ending = client.unasked(), "_new" if client.consented else ""
    answers: list[bool] = []
    dialog = tk.Toplevel(parent)
    dialog.title(words("consent_title"))
    dialog.transient(parent.winfo_toplevel())

    def decide(*, granted: bool) -> None:
        answers.append(granted)
        dialog.destroy()

    box = scrolledtext.ScrolledText(
        dialog, wrap="word", width=WIDTH, height=LINES, padx=12, pady=6, spacing3=6
    )
    box.configure(font="TkDefaultFont")
    box.tag_configure(HEADING, font="TkCaptionFont", spacing1=12)
    box.tag_configure(STRONG, font="TkHeadingFont")
    for text, tag in pieces(client, names, words, language):
        box.insert("end", text, tag)
    box.configure(state="disabled")
    buttons = ttk.Frame(dialog, padding=12)
    for key, granted in ((f"consent_yes{ending}", True), (f"consent_no{ending}", False)):
        button = ttk.Button(buttons, text=words(key), command=partial(decide, granted=granted))
        button.pack(side="left", expand=True, fill="x", padx=6)
    buttons.pack(side="bottom", fill="x")
    box.pack(side="top", expand=True, fill="both")
    dialog.bind("<Escape>", lambda _: dialog.destroy())
    box.focus_set()  # to scroll by keys: neither answer is chosen
    dialog.wait_visibility()
    dialog.grab_set()
    dialog.wait_window()
    if not answers:
        return None
    client.consent(answers[0], only="new")
    return answers[0]
