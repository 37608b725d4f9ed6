"""`veilcount collections push | list | close`: in a store, or at a running server.

`veilcount collections close-rows` closes rows by their names, in a store.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TextIO

import click
import msgspec

from veilcount_analysis.series.series import utc_day
from veilcount_analysis.text import number_format
from veilcount_analysis.text.number_format import format_bytes
from veilcount_analysis.text.view_parts import Table
from veilcount_serving.errors import SettingsError

from ...queries import CollectionList, decoded, list_collections, plain
from ...records.definitions import add_definitions, close_collection, load_catalog, read_source
from ...store.retention.row_closing import RowReference, close_row
from ...store.tally_size import worst_case
from . import options
from .output import print_result
from .query_source import opened_snapshot, server_of, source_options

PATH = "/v1/collections"

Facts = dict[str, Any]

LISTED = ("name", "fingerprint", "unit", "from", "until", "event", "day", "user", "by", "state")


@click.group("collections")
def command() -> None:
    """Push, list and close collection definitions; close single rows."""


@command.command("push")
@click.argument("file", type=click.Path(path_type=Path))
@source_options
@options.setting_option("max_counter_memory")
@options.as_json
def push_file(
    file: Path,
    *,
    url: str | None,
    server: str | None,
    key: str,
    max_counter_memory: int | None,
    as_json: bool,
) -> None:
    """Push a definitions file; every worker accepts its reports within a second.

    Refused if its counters do not fit the limit: a server's own, with --url.
    """
    source = read_source(file)
    if remote := server_of(url, server, key):
        body = {"text": source.text, "files": dict(source.files)}
        new: list[Facts] = remote.send("POST", PATH, json=body)["new"]
    else:
        with options.opened(url) as store:
            added = add_definitions(
                store, source, options.now(), "cli", counter_limit=max_counter_memory
            )
            shards = store.shard_count()
        new = [
            {
                "name": collection.name,
                "fingerprint": collection.fingerprint,
                "counter_bytes": worst_case(collection, shards),
            }
            for collection in added
        ]
    rows = [
        (series["name"], series["fingerprint"], format_bytes(series["counter_bytes"]))
        for series in new
    ]
    table = Table("", ("new", "fingerprint", "max counter memory"), rows)
    parts = [table if new else "nothing new: all definitions were known"]
    print_result({"new": new}, parts, as_json=as_json)


@command.command("list")
@source_options
@options.as_json
def list_all(*, url: str | None, server: str | None, key: str, as_json: bool) -> None:
    """List all collections, each by its newest definition."""
    if remote := server_of(url, server, key):
        result = decoded(remote.send("GET", PATH), CollectionList)
    else:
        with opened_snapshot(url) as snapshot:
            result = list_collections(snapshot)
    rows = [
        (
            listed.name,
            listed.fingerprint[:12],
            *(str(fact) for fact in (listed.unit, listed.start, listed.until)),
            *(listed.epsilon.event, listed.epsilon.day, listed.epsilon.user),
            number_format.adjacency(listed.epsilon.adjacency),
            "closed" if listed.closed else "open",
        )
        for listed in result.collections
    ]
    print_result(plain(result)["collections"], [Table("", LISTED, rows)], as_json=as_json)


@command.command("close")
@options.name_in_store
@source_options
@options.as_json
def close(name: str, *, url: str | None, server: str | None, key: str, as_json: bool) -> None:
    """Close a collection: no more reports, under any of its definitions."""
    if remote := server_of(url, server, key):
        closed: list[str] = remote.post(name, "close", {})["closed"]
    else:
        with options.opened(url) as store:
            if name not in load_catalog(store).by_name:
                fix = "no such collection: `veilcount collections list` shows them"
                raise SettingsError("name", name, fix)
            series = close_collection(store, name, options.now(), "cli")
        closed = [version.fingerprint for version in series]
    line = f"{name} is closed" if closed else f"{name} was closed already"
    print_result({"closed": closed}, [line], as_json=as_json)


@command.command("close-rows")
@click.argument("file", type=click.File("r", encoding="utf-8", errors="replace"))
@options.store
@options.as_json
def close_rows(file: TextIO, url: str | None, *, as_json: bool) -> None:
    """Close the rows that a person names: one "FINGERPRINT PSEUDONYM" a line of FILE, or of -.

    What was counted stays counted. No name is printed or logged.
    """
    names = [_row_name(number, line) for number, line in enumerate(file, 1) if not line.isspace()]
    with options.opened(url) as store:
        series, day = load_catalog(store).series, utc_day(options.now())
        closed = sum(close_row(store, series, name, day) for name in names)
    counts = {"closed": closed, "unknown": len(names) - closed}
    lines = [
        f"closed: {counts['closed']}",
        f"unknown: {counts['unknown']} (never counted here, or deleted with their epoch)",
    ]
    print_result(counts, lines, as_json=as_json)


def _row_name(number: int, line: str) -> RowReference:
    """Return the name in a line; an error names the line and the field, and no value."""
    try:
        fingerprint, pseudonym = line.split()
        return msgspec.convert({"fingerprint": fingerprint, "pseudonym": pseudonym}, RowReference)
    except ValueError as error:
        field = str(error).partition("$.")[2].rstrip("`") or "fields"
        fix = "give the fingerprint (64 hexadecimal digits) and the pseudonym (22 letters of"
        raise click.BadParameter(
            f"line {number}: {field}: {fix} base64url) as `Client.rows()` returned them",
            param_hint="FILE",
        ) from None
