"""`veilcount shuffler`: its store and its server, and whose batches an aggregator takes."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from pathlib import Path

import click

from veilcount_serving.errors import SettingsError
from veilcount_serving.findings import Severity, worst
from veilcount_serving.listen_address import ListenAddress
from veilcount_shuffler.crowd_states import CrowdStates
from veilcount_shuffler.disk import Disk
from veilcount_shuffler.network_limit import RATE
from veilcount_shuffler.serve import ShufflerSettings, serve_shuffler
from veilcount_shuffler.setup import Loaded, NewStore
from veilcount_shuffler.setup import init as make_store
from veilcount_shuffler.setup import load as load_store
from veilcount_shuffler.shuffler_checks import examine_shuffler
from veilcount_shuffler.status import crowd_statuses
from veilcount_shuffler.store_settings import PUBLIC_FILE, StoreSettings

from ...records.shuffler_keys import ALWAYS, ANY, trust_shuffler
from ...settings import PREFIX
from . import options
from .main import EXIT_NEGATIVE, EXIT_OK
from .output import facts_table, print_json, print_result, print_startup

ADDRESS = "127.0.0.1:8440"
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)

store = click.option("--store", type=FOLDER, required=True, metavar="DIR", help="Its own folder.")
collections = options.collections_files()
gateway_keys = click.option(
    "--gateway-keys",
    type=FILE,
    required=True,
    metavar="FILE",
    help="The aggregator's relay.keys, as it is shipped with the app.",
)
witness = click.option(
    "--witness",
    type=FOLDER,
    metavar="PATH",
    envvar=f"{PREFIX}SHUFFLER_WITNESS",
    help="Folder on another disk or host that knows which crowds have left.",
)


@click.group("shuffler")
def command() -> None:
    """Hold reports that you cannot read, and hand each crowd over once, shuffled among covers."""


@command.command("init")
@store
@collections
@gateway_keys
@click.option("--to", "target", required=True, metavar="URL", help="The aggregator.")
@click.option(
    "--key",
    "api_key",
    default="",
    envvar=f"{PREFIX}SHUFFLER_KEY",
    help="Its API key of the role shuffler.",
)
@click.option("--name", default="shuffler", show_default=True, help="Who runs it, for people.")
@options.as_json
def init(
    *,
    store: Path,
    files: tuple[Path, ...],
    gateway_keys: Path,
    target: str,
    api_key: str,
    name: str,
    as_json: bool,
) -> None:
    """Make a store and the key that signs; refuse a definition with too few covers."""
    settings = StoreSettings(store, Disk())
    new = NewStore(target, api_key, name)
    loaded = make_store(settings, new, files, gateway_keys, options.now().date())
    public = store / PUBLIC_FILE
    line = f"the aggregator trusts it by `veilcount shuffler trust {public}`"
    facts = asdict(loaded) | {"public": str(public)}
    print_result(facts, [_loaded(loaded), line], as_json=as_json)


@command.command("load")
@store
@collections
@gateway_keys
@options.as_json
def load(store: Path, files: tuple[Path, ...], gateway_keys: Path, *, as_json: bool) -> None:
    """Add definitions and keys; a crowd that has begun is not changed."""
    settings = StoreSettings(store, Disk())
    loaded = load_store(settings, files, gateway_keys, options.now().date())
    print_result(asdict(loaded), [_loaded(loaded)], as_json=as_json)


@command.command("serve")
@store
@options.bind(ADDRESS)
@witness
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True)
@click.option(
    "--rate",
    type=click.IntRange(0),
    default=RATE,
    show_default=True,
    help="Envelopes an hour from one network; 0: no limit.",
)
@click.option("--dev-only", is_flag=True, help="For development: leave after --grace seconds.")
@click.option("--grace", type=click.IntRange(1, 3600), help="Seconds, with --dev-only.")
@options.startup_json
@click.pass_context
def serve(
    context: click.Context,
    /,
    *,
    store: Path,
    bind: str,
    witness: Path | None,
    workers: int,
    rate: int,
    dev_only: bool,
    grace: int | None,
    as_json: bool,
) -> None:
    """Hold reports and hand crowds over when they are due, until SIGTERM."""
    if dev_only is (grace is None):
        raise SettingsError("--grace", str(grace or ""), "give --dev-only --grace SECONDS, or none")
    development = timedelta(seconds=grace) if grace is not None else None
    settings = ShufflerSettings(store, witness, rate, workers, development)
    announce = partial(print_startup, as_json=as_json)
    context.exit(serve_shuffler(settings, ListenAddress.parse(bind), announce))


@command.command("status")
@store
@options.as_json
def status(store: Path, *, as_json: bool) -> None:
    """Show which crowds are open, have left or wait."""
    settings = StoreSettings(store, Disk())
    settings.require()
    with closing(CrowdStates(settings.crowds, Disk())) as states:
        rows = [asdict(row) for row in crowd_statuses(settings, states, options.now())]
    shown = [
        {name: "" if value is None else str(value) for name, value in row.items()} for row in rows
    ]
    print_result(rows, [facts_table(shown, "no crowds")], as_json=as_json)


@command.command("doctor")
@store
@witness
@options.as_json
@click.pass_context
def doctor(context: click.Context, /, *, store: Path, witness: Path | None, as_json: bool) -> None:
    """Examine the store, its witness, its covers and the aggregator; change nothing."""
    settings = ShufflerSettings(store, witness)
    settings.stored().require()
    findings = list(examine_shuffler(settings, options.now()))
    state = worst(findings)
    if as_json:
        rows = [asdict(finding) for finding in findings]
        print_json({"state": state.value, "findings": rows})
    else:
        shown = [
            {"state": row.state.value, "check": row.check, "finding": f"{row.what} {row.fix}"}
            for row in findings
        ]
        print_result({}, [facts_table(shown, "no findings")], as_json=False)
    context.exit(EXIT_NEGATIVE if state is Severity.WRONG else EXIT_OK)


@command.command("trust")
@click.argument("file", type=FILE)
@click.option("--collection", default=ANY, help="For this one alone.  [default: all]")
@options.store
@options.as_json
def trust(file: Path, collection: str, url: str | None, *, as_json: bool) -> None:
    """At the aggregator: take the batches of this shuffler.

    In place of another, from tomorrow's periods on.
    """
    with options.opened(url) as store:
        key = trust_shuffler(store, file.read_bytes(), collection, options.now())
    first = "all periods" if key.start == ALWAYS.isoformat() else f"periods from {key.start} on"
    facts = {"name": key.name, "collection": key.collection, "from": key.start}
    line = f"{key.name} is trusted for {collection or 'all collections'}, {first}"
    print_result(facts, [line], as_json=as_json)


def _loaded(loaded: Loaded) -> str:
    return (
        f"{loaded.added} definitions added: {loaded.collections} in all, {loaded.keys} gateway keys"
    )
