"""`veilcount demo`: a complete deployment on this machine, with a simulated population."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from fractions import Fraction
from types import FrameType
from typing import Any

import click
import numpy as np

from veilcount_analysis.releases.opendp_noise import load_opendp
from veilcount_issuer.signing import require_gmpy2
from veilcount_serving import structured_logging
from veilcount_serving.posix import require_posix

from ...records import sessions
from ...records.api_keys import Role
from ...server.background import BackgroundThread
from ...service import Aggregator
from ...store.store_url import redact_url
from ..demo import summary
from ..demo.campaign import Campaign
from ..demo.deployment import DemoClock, DemoDeployment, allow_files, deploy
from ..demo.run import RELAYED, DemoRun, ShowDay
from . import options
from .main import EXIT_OK
from .output import print_json, print_lines, print_table, status_line

FEWEST, MOST = 1_000, 200_000
DEVICES, CLIENTS = 20_000, 500
SEEDS = 1 << 32
ALIASES = {"redis": "redis://127.0.0.1:6379/0"}
SIGNALS = (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))


@click.command("demo")
@click.option(
    "--devices",
    type=click.IntRange(FEWEST, MOST),
    default=DEVICES,
    show_default=True,
    help="Number of devices.",
)
@click.option(
    "--clients",
    type=click.IntRange(0),
    default=CLIENTS,
    show_default=True,
    help="Number of real clients among them; the others are simulated.",
)
@click.option(
    "--seed", type=click.IntRange(0, SEEDS - 1),
    help="Reproduce the population. The randomness of real clients is never seeded.",
)  # fmt: skip
@click.option(
    "--store",
    "url",
    default="",
    type=options.StoreUrl(),
    metavar="URL",
    callback=lambda _context, _option, url: ALIASES.get(url, url),
    help="URL of a new store, or `redis` for the one of this machine (default: temporary).",
)
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=0, help="Port to serve on; 0: any free port."
)
@options.level
@click.option("--once", is_flag=True, help="Exit after printing the summary.")
@options.as_json
def command(
    *,
    devices: int,
    clients: int,
    seed: int | None,
    url: str,
    port: int,
    level: Fraction,
    once: bool,
    as_json: bool,
) -> int:
    """Replay four months of a sample app in half a minute, then serve the dashboard.

    A hiking app collects seven statistics, one over a relay and with tokens, one by a shuffler. The
    true values are known here, and are printed next to the estimates and to the release of a
    trusted curator.
    It serves until Ctrl-C, and leaves nothing behind except a --store.
    """
    if clients > devices:
        raise click.BadParameter(
            f"give at most as many as --devices: {devices}", param_hint="--clients"
        )
    require_posix("the demo")
    load_opendp()  # rather than refuse the release at the end
    require_gmpy2()
    structured_logging.configure_logging(sys.stderr)
    allow_files(clients + min(clients, RELAYED))
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
    campaign = Campaign(options.now())
    clock = DemoClock(campaign.begins)
    deployment = deploy(campaign, clock, clients=clients, store=url, port=port)
    with _graceful_shutdown(), deployment as place:
        demo = DemoRun.prepare(campaign, place, devices=devices, clients=clients, seed=seed)
        with _day_progress(quiet=as_json) as progress:
            result = demo.play(progress)
        document = summary.summary(result, seed=seed, level=float(level))
        clock.release()
        _print(document, "" if once else _link(place), url, as_json=as_json)
        if not once:
            _serve(place.aggregator)
    return EXIT_OK


def _link(place: DemoDeployment) -> str:
    secret = sessions.create_link(place.aggregator.store, Role.ADMIN, place.clock.instant())
    return sessions.link_url(place.url, secret)


def _print(document: dict[str, Any], link: str, url: str, *, as_json: bool) -> None:
    if as_json:
        print_json(document | {"link": link or None})
        return
    for lines, (columns, rows) in summary.sections(document):
        print_lines(lines)
        print_table(columns, rows)
    if url:
        print_lines(["", f"Everything is kept in {redact_url(url)}."])
    if link:
        dashboard = f"Dashboard (the link works once, within 15 minutes): {link}"
        print_lines(["", dashboard, "Press Ctrl-C to stop."])


def _serve(aggregator: Aggregator) -> None:
    sys.stdout.flush()
    background = BackgroundThread(aggregator, structured_logging.FaultLog())
    background.start()
    try:
        while True:
            time.sleep(1.0)  # and no longer: a signal just before a sleep is seen after it
    except KeyboardInterrupt:
        return
    finally:
        background.stop()


@contextmanager
def _graceful_shutdown() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP as Ctrl-C, and ignore further signals during the cleanup."""

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - what a handler takes
        for signal_number in SIGNALS:
            signal.signal(signal_number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in SIGNALS}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


@contextmanager
def _day_progress(*, quiet: bool) -> Iterator[ShowDay]:
    """Show the replayed days on stderr: a line that changes on a terminal, else one per month."""
    if quiet:
        yield lambda *_: None
    elif sys.stderr.isatty():
        with status_line() as update:
            yield lambda day, days, instant: update(_day(day, days, instant))
    else:
        yield _print_first_of_month


def _print_first_of_month(day: int, days: int, instant: datetime) -> None:
    if instant.day == 1:
        click.echo(_day(day, days, instant), err=True)


def _day(day: int, days: int, instant: datetime) -> str:
    return f"{instant:%Y-%m-%d}: day {day + 1} of {days}"
