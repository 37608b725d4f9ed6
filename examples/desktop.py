"""A desktop app, in Tk: `python examples/desktop.py`."""

from __future__ import annotations

import tkinter as tk
from pathlib import Path
from tkinter import ttk

from veilcount import Client
from veilcount_client.integrations.tk import ask

THEMES = ("light", "dark", "system")


class Editor(ttk.Frame):
    """A window with a choice of themes."""

    def __init__(self, window: tk.Tk) -> None:
        """Make the client at the start; a file that is read takes milliseconds."""
        super().__init__(window, padding=24)
        self.statistics = Client(collections=Path(__file__).with_name("collections.toml"))
        self.window, self.theme = window, tk.StringVar(value="system")
        for theme in THEMES:
            ttk.Radiobutton(
                self, text=theme, value=theme, variable=self.theme, command=self.choose
            ).pack(anchor="w")
        ttk.Button(self, text="What was sent about me", command=self.show).pack(pady=12)
        window.title("Editor")
        window.protocol("WM_DELETE_WINDOW", self.quit)
        self.pack()

    def choose(self) -> None:
        """Use the app; ask when there is something to count, and not at the first start."""
        if self.statistics.must_ask:
            ask(self.window, self.statistics)
        self.statistics.record("theme", self.theme.get())

    def show(self) -> None:
        """Show the receipt."""
        window = tk.Toplevel(self.window)
        box = tk.Text(window, wrap="word")
        box.insert("end", self.statistics.receipt().text())
        box.configure(state="disabled")
        box.pack(expand=True, fill="both")

    def quit(self) -> None:
        """Store what is in memory, for two seconds at most, and close the window."""
        self.statistics.close()
        self.window.destroy()


if __name__ == "__main__":
    Editor(tk.Tk()).mainloop()
