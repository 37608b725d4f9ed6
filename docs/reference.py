"""The references of the site, as Markdown: commands, HTTP endpoints, public names.

All are written from what the code declares whenever the site is built, so none can be out of date.
"""

from __future__ import annotations

import importlib
import inspect
import json
from argparse import HelpFormatter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import click

from veilcount_aggregator.operate.cli.main import NAME, veilcount
from veilcount_aggregator.web.api.openapi import PREFIX, document
from veilcount_aggregator.web.api.problems import PROBLEM_KINDS
from veilcount_aggregator.web.api.routes import ENDPOINTS
from veilcount_aggregator.web.api.version import installed_version
from veilcount_client.__main__ import parsers

WIDTH = 80  # columns of a terminal
LIBRARIES = {
    "veilcount": "the client",
    "veilcount_analysis": "figures from counters",
    "veilcount_reader": "results over HTTP",
}


def references() -> dict[str, str]:
    """Return the text of each page, by its path in the site."""
    libraries = {f"reference/{name}.md": library(name) for name in LIBRARIES}
    return {"reference/commands.md": commands(), "reference/http.md": http(), **libraries}


# -- commands ----------------------------------------------------------------------------------


def commands() -> str:
    """Return the page of all commands: the help of each, as a terminal shows it."""
    parts = [f"## `{path}`\n\n```text\n{text}\n```" for path, text in helps()]
    lead = (
        "What `--help` prints, of each command and subcommand. A device has the client alone: there"
        " `veilcount` is what `python -m veilcount_client` is anywhere."
    )
    return "\n\n".join(["# Commands", lead, *parts])


def helps() -> Iterator[tuple[str, str]]:
    """Yield each command's words and its help."""
    for context in _contexts(click.Context(veilcount, info_name=NAME, terminal_width=WIDTH)):
        yield context.command_path, context.command.get_help(context)
    for parser in parsers():
        parser.formatter_class = partial(HelpFormatter, width=WIDTH)
        yield parser.prog, parser.format_help().rstrip()


def _contexts(context: click.Context) -> Iterator[click.Context]:
    yield context
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None  # noqa: S101 - it was listed
            yield from _contexts(click.Context(command, parent=context, info_name=name))


# -- the HTTP API ------------------------------------------------------------------------------


def http() -> str:
    """Return the page of the HTTP API, from the OpenAPI document that every aggregator serves."""
    api = document(installed_version(), ENDPOINTS)
    operations = [
        "\n\n".join(_operation(f"{method.upper()} {path}", operation))
        for path, methods in api["paths"].items()
        for method, operation in methods.items()
    ]
    types = [
        f"### {name}\n\n```json\n{json.dumps(schema, indent=2)}\n```"
        for name, schema in api["components"]["schemas"].items()
    ]
    problems = [
        (f"`{kind.uri}`", str(kind.status.value), kind.title, kind.fix)
        for kind in PROBLEM_KINDS.values()
    ]
    lead = (
        f"{api['info']['description']} A key is sent as `Authorization: Bearer`. Every aggregator"
        " serves this page as `/docs`, and as a document for programs as `/openapi.json`."
    )
    table = _table(("Type", "Status", "Title", "Fix"), problems)
    heads = ("# HTTP API", lead, "## Endpoints", *operations)
    return "\n\n".join([*heads, "## Problems", table, "## Types", *types])


def _operation(title: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### `{title}`"
    yield operation["description"]
    if "x-role" in operation:
        keyless = {} in operation["security"]
        yield f"Key: `{operation['x-role']}`{', once a device key was created' if keyless else ''}."
    if "requestBody" in operation:
        yield f"Body: {_bodies(operation['requestBody'])}."
    parameters = [
        (f"`{parameter['name']}`", parameter["description"])
        for parameter in operation["parameters"]
        if parameter["in"] == "query"
    ]
    if parameters:
        yield _table(("Parameter", "Description"), parameters)
    responses = [
        (status, response["description"], _bodies(response))
        for status, response in operation["responses"].items()
    ]
    yield _table(("Status", "Description", "Body"), responses)


def _bodies(message: dict[str, Any]) -> str:
    return ", ".join(_body(*item) for item in message.get("content", {}).items())


def _body(media: str, content: dict[str, Any]) -> str:
    """Return a body's media type, with a link to the type that it has if it is JSON."""
    name = str(content["schema"].get("$ref", "")).removeprefix(PREFIX)
    return f"`{media}` ([{name}](#{name.lower()}))" if name else f"`{media}`"


def _table(head: tuple[str, ...], body: Sequence[tuple[str, ...]]) -> str:
    rows = [[cell.replace("|", "&#124;") for cell in line] for line in [head, *body]]
    rows.insert(1, ["---"] * len(head))
    return "\n".join(f"| {' | '.join(line)} |" for line in rows)


# -- libraries ---------------------------------------------------------------------------------


def library(package: str) -> str:
    """Return the page of a package's public names, which mkdocstrings fills in."""
    blocks = (f"::: {place}" for place in public_names(package).values())
    return "\n\n".join([f"# `{package}`: {LIBRARIES[package]}", *blocks])


def public_names(package: str) -> dict[str, str]:
    """Map what a package exports to where it is defined."""
    module = importlib.import_module(package)
    classes = [name for name, value in vars(module).items() if inspect.isclass(value)]
    exports = {name: getattr(module, name) for name in getattr(module, "__all__", classes)}
    return {name: f"{it.__module__}.{it.__qualname__}" for name, it in exports.items()}
