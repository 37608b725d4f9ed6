"""`veilcount new`: a first definitions file, whose campaign has begun."""

from __future__ import annotations

from pathlib import Path

import click

from veilcount_serving.errors import SettingsError
from veilcount_shared.periods import Unit, first_day

from . import options
from .output import print_result

FILE = "collections.toml"
MONTHS = 6
TEMPLATE = """\
app = "my-app"                       # names the app, on devices and in reports

[theme]                              # a table for each question
question = "Which theme is active?"
values   = ["light", "dark", "system"]
epsilon  = 1                         # what one answer may reveal at most
unit     = "month"                   # one answer per month
answers  = 6                         # in each of the 6 months: epsilon 6 per person in all
from     = {start}
until    = {until}
"""


@click.command("new")
@click.argument("file", type=click.Path(path_type=Path), default=FILE)
@options.as_json
def command(file: Path, *, as_json: bool) -> None:
    """Write a definitions file with one question to FILE (default: collections.toml).

    Its campaign has begun with this month and lasts for half a year: everybody answers each month,
    so that the first report arrives today. An existing file is left unchanged.
    """
    start = options.now().date().replace(day=1)
    text = TEMPLATE.format(start=start, until=first_day(Unit.MONTH, start, MONTHS))
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        raise SettingsError("FILE", str(file), "it exists: give another name") from None
    lines = [f"{file}: one question, from {start}; `veilcount dev` runs it"]
    print_result({"file": str(file), "from": start.isoformat()}, lines, as_json=as_json)
