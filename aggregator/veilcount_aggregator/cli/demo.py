"""`veilcount demo`: the whole way of a value on this machine, with a crowd whose truth is known."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from types import FrameType

import click
import numpy as np

from .. import structured_logging
from ..auth import login_links
from ..auth.api_keys import Role
from ..demo import output
from ..demo.campaign import Campaign
from ..demo.clock import DemoClock
from ..demo.deployment import DemoDeployment, allow_files, deploy
from ..demo.progress import day_progress
from ..demo.run import DemoRun
from ..demo.summary import Summary, summary
from ..queries import plain
from ..server.background import BackgroundThread
from ..service import Aggregator
from ..store.url_redaction import redact_url
from . import options
from .main import EXIT_OK
from .output import print_json, print_lines, print_table

FEWEST, MOST = 1_000, 200_000
DEVICES, CLIENTS = 20_000, 500
SEEDS = 1 << 32
NEAR = {"redis": "redis://127.0.0.1:6379/0"}
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command("demo")
@click.option(
    "--devices",
    type=click.IntRange(FEWEST, MOST),
    default=DEVICES,
    show_default=True,
    help="How many take part.",
)
@click.option(
    "--clients",
    type=click.IntRange(0),
    default=CLIENTS,
    show_default=True,
    help="How many of them are real clients; the others are simulated, by the exact law.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, SEEDS - 1),
    help="The same people again, saying the same. Coins of real clients are never seeded.",
)
@click.option(
    "--store",
    "url",
    default="",
    metavar="URL",
    callback=lambda _context, _option, url: NEAR.get(url, url),
    help="A new store, or `redis`: the one of this machine. Else a throwaway.",
)
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=0, help="To serve at; else any that is free."
)
@options.level
@click.option("--once", is_flag=True, help="End after the figures.")
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
    """Tell four months of a made-up app's statistics in half a minute, then show the pages.

    A hiking app asks five questions. The truth is known here and nowhere else, so that it can stand
    beside what randomized answers say of it, and beside what a trusted curator would say. It serves
    until Ctrl-C, and leaves nothing behind but what is in a --store.
    """
    if clients > devices:
        raise click.BadParameter(
            f"give at most as many as --devices: {devices}", param_hint="--clients"
        )
    structured_logging.configure_logging(sys.stderr)
    allow_files(clients)
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
    campaign = Campaign(options.now())
    clock = DemoClock(campaign.begins)
    put_up = deploy(campaign, clock, clients=clients, store=url, port=port)
    with _ending_well(), put_up as place:
        story = DemoRun.cast(campaign, place, devices=devices, clients=clients, seed=seed)
        with day_progress(quiet=as_json) as progress:
            ending = story.play(progress)
        found = summary(ending, seed=seed, level=float(level), generator=story.generator)
        clock.release()
        _print(found, "" if once else _link(place), url, as_json=as_json)
        if not once:
            _stay(place.aggregator)
    return EXIT_OK


def _link(place: DemoDeployment) -> str:
    """Return a link that logs in once, as an admin: every page can be seen."""
    secret = login_links.create_link(place.aggregator.store, Role.ADMIN, place.clock.instant())
    return login_links.link_url(place.url, secret)


def _print(found: Summary, link: str, url: str, *, as_json: bool) -> None:
    if as_json:
        print_json(plain(found) | {"link": link or None})
        return
    print_lines([*output.participation_lines(found), "", *output.question_lines(found), ""])
    print_table(output.FIGURES, map(output.figures, found.rows))
    print_lines(["", *output.notes(found), ""])
    print_table(output.RELEASED, map(output.released, found.release.rows))
    print_lines(["", output.PRICES, ""])
    print_table(output.COSTS, map(output.costs, found.accounts))
    if url:
        print_lines(["", f"All of it stays in {redact_url(url)}."])
    if link:
        lines = (f"See it (the link logs in once, within 15 minutes): {link}", "Ctrl-C ends it.")
        print_lines(["", *lines])


def _stay(aggregator: Aggregator) -> None:
    """Serve until somebody ends it."""
    sys.stdout.flush()
    ticker = BackgroundThread(aggregator, structured_logging.FaultLog())
    ticker.start()
    try:
        while True:
            time.sleep(1.0)  # and no longer: a signal just before a sleep is seen after it
    except KeyboardInterrupt:
        return
    finally:
        ticker.stop()


@contextmanager
def _ending_well() -> Iterator[None]:
    """Let a closed terminal and `kill` end as Ctrl-C does, and a second one not disturb the first.

    What was begun is taken down on the way out: an impatient end would leave files behind.
    """

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - what a handler takes
        for each in ENDINGS:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {each: signal.signal(each, end) for each in ENDINGS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
