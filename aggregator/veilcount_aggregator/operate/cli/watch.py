"""`veilcount watch`: check rules on a running server, and tell a webhook."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from veilcount_reader.http_client import AggregatorClient
from veilcount_serving.errors import SettingsError

from ...errors import StoreUnavailable
from ...settings import PREFIX
from ..watch import Watcher, WatchRules, Webhook
from . import query_source
from .main import EXIT_NEGATIVE, NegativeResult
from .output import print_lines

SECONDS = 60.0


@click.command("watch")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--webhook",
    envvar=f"{PREFIX}WEBHOOK",
    metavar="URL",
    help=f"Receiver of events, instead of the file's; {PREFIX}WEBHOOK keeps it out of the shell.",
)
@click.option("--every", type=click.FloatRange(min=0.1), default=SECONDS, show_default=True)
@click.option("--once", is_flag=True, help="Check once, and exit with 1 if a rule fires.")
@query_source.url_option
@query_source.key_option
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON.")
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    file: Path,
    webhook: str | None,
    every: float,
    once: bool,
    server: str | None,
    key: str,
    as_json: bool,
) -> None:
    """Check the rules of FILE on a server: an estimate past a bound, no reports, little budget.

    Each rule that begins to fire, and each that is over, is one line and one JSON document, posted
    to the webhook until it is accepted. An estimate fires only if its whole interval is past the
    bound.
    """
    rules = WatchRules.load(file)
    watcher = Watcher(rules.checks(), **({"rounds": 1} if once else {}))
    there = RunningServer(_server(server, key))
    receiver = Webhook(webhook or rules.webhook, _say) if webhook or rules.webhook else None
    while True:
        begun = time.monotonic()
        events = list(watcher.look(there, begun, datetime.now(UTC)))
        for event in events:
            document = json.dumps(event.as_json())
            print_lines([document if as_json else str(event)])
            if receiver is not None:
                receiver.add(event)
        if receiver is not None:
            receiver.deliver(time.monotonic())
        if once:
            context.exit(EXIT_NEGATIVE if events else 0)
        time.sleep(max(0.0, every - (time.monotonic() - begun)))


def _server(url: str | None, key: str) -> query_source.Server:
    if not url:
        raise SettingsError("--url", "", f"give a running server's address, here or as {PREFIX}URL")
    return query_source.Server(url, key)


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A running server, as rules ask it."""

    server: query_source.Server

    def get(self, path: str, params: Mapping[str, str]) -> dict[str, Any]:
        """Return a document."""
        try:
            return self.server.send("GET", path, params=dict(params))
        except (click.ClickException, NegativeResult) as error:
            raise StoreUnavailable(str(error)) from error

    def counted(self, collection: str) -> int | None:
        """Return how many reports were counted, by the metrics."""
        labels = f'collection="{re.escape(collection)}",verdict="counted"'
        line = re.compile(rf"veilcount_verdicts_total{{{labels}}} (\d+)")
        match = line.search(self._metrics())
        return int(match[1]) if match else None

    def _metrics(self) -> str:
        with AggregatorClient(self.server.url, self.server.key, SECONDS) as client:
            response = client.request("GET", "/metrics")
        if not response.ok:
            raise StoreUnavailable(f"/metrics answers HTTP {response.status_code}")
        return response.text


def _say(text: str) -> None:
    print_lines([text], err=True)
