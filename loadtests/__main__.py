"""Simulated devices against a real server: the run fails unless the store tells the truth."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.engines import ENGINES

from .faults import FAULTS, KILLS, NEED_CLUSTER
from .load_profiles import HERD, HOSTILE, SHAPES, SOAK, STEADY
from .plan import GROWTH, OUTAGE, Plan
from .runner import run
from .through_shuffler import LEAST, EnvelopeRun, run_through_shuffler

LOCUSTFILE = Path(__file__).with_name("locustfile.py")
FEWEST_FOR_FAKES = 100
SECONDS = 10
FAULTED = 150  # devices a second, where a fault strikes


def main() -> int:
    """Run, print what came of it; 1 if anything is wrong."""
    arguments = _arguments()
    if arguments.against:
        return _against(arguments)
    if arguments.shuffler:
        return _through_shuffler(arguments)
    plan = _plan(arguments)
    fault = f", {plan.fault}" if plan.fault else ""
    real = f" and {plan.real} real ones" if plan.real else ""
    print(
        f"{plan.shape}{fault}: {plan.devices:,} devices{real}, {plan.users} at once, for "
        f"{plan.seconds} s at most, on {plan.store}, workers: {plan.workers}",
        flush=True,
    )
    with TemporaryDirectory(prefix="veilcount-load-") as folder:
        outcome = run(plan, Path(folder))
    print(outcome)
    return 1 if outcome.failures else 0


def _through_shuffler(arguments: argparse.Namespace) -> int:
    """Send envelopes to a shuffler, which is killed in between; 1 if anything is wrong."""
    users = arguments.users or SHAPES[STEADY].users
    devices = arguments.devices or max(LEAST, arguments.seconds * FAULTED // 2)
    plan = EnvelopeRun(devices, users, arguments.seconds, arguments.seed, kill=True)
    with TemporaryDirectory(prefix="veilcount-load-") as folder:
        wrong = run_through_shuffler(plan, Path(folder))
    print("\n".join(f"WRONG: {problem}" for problem in wrong) or "as it should be")
    return 1 if wrong else 0


def _against(arguments: argparse.Namespace) -> int:
    """Load a server that is there already; 1 if a body was not counted."""
    users = str(arguments.users or SHAPES[STEADY].users)
    command = [sys.executable, "-m", "locust", "--locustfile", str(LOCUSTFILE), "--headless"]
    command += ["--host", arguments.against, "--users", users, "--spawn-rate", users]
    command += ["--run-time", f"{arguments.seconds}s", "--only-summary", *_files(arguments)]
    return subprocess.run(command, check=False).returncode


def _files(arguments: argparse.Namespace) -> tuple[str, ...]:
    files = [("--html", arguments.html), ("--csv", arguments.csv)]
    return tuple(word for flag, file in files if file for word in (flag, str(file.resolve())))


def _plan(arguments: argparse.Namespace) -> Plan:
    fault: str = arguments.kill or arguments.fault or (OUTAGE if arguments.shape == HERD else "")
    watched = arguments.shape in {SOAK, HOSTILE}
    return Plan(
        arguments.store,
        arguments.users or _users(arguments.shape, fault),
        arguments.seconds,
        arguments.workers,
        arguments.devices or _devices(arguments.shape, fault, arguments.seconds),
        arguments.seed,
        arguments.shape,
        fault,
        arguments.replicas,
        arguments.devices_real,
        arguments.generators,
        arguments.ui,
        arguments.p99,
        arguments.errors,
        GROWTH if arguments.growth is None and watched else arguments.growth,
        _files(arguments),
    )


def _users(shape: str, fault: str) -> int:
    """Return how many devices send at once."""
    return (fault and FAULTS[fault].users) or SHAPES[shape].users


def _devices(shape: str, fault: str, seconds: int) -> int:
    """Return how many a run draws: where sends are spread over the time, few enough to be so."""
    drawn = SHAPES[shape].devices
    few = FEWEST_FOR_FAKES if shape == HOSTILE else 1
    return max(few, seconds * (min(drawn, FAULTED) if fault else drawn))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev load", description=__doc__)
    say = parser.add_argument
    say("--against", metavar="URL", help="load this server, with made-up answers that it counts")
    say("--shuffler", action="store_true", help="load a shuffler, which is killed in between")
    say("--shape", choices=SHAPES, default=STEADY, help="the course of the run (steady)")
    say("--store", choices=ENGINES, default="sqlite", help="sqlite is the default")
    say("--users", type=_some, help="devices that send at once (32; in a herd 200)")
    say("--seconds", type=_some, help=f"ends after these at most ({SECONDS}, or as a fault needs)")
    say("--workers", type=_some, default=1, help="processes of the server (1)")
    say("--devices", type=_some, help="light devices in all; unless given, by shape and seconds")
    say(
        "--devices-real", type=int, default=0, metavar="N", help="also run so many real clients (0)"
    )
    say("--generators", type=_some, default=1, help="locust workers, if more than one (1)")
    say("--seed", type=int, default=1, help="of everything that is drawn (1)")
    wrong = parser.add_mutually_exclusive_group()
    wrong.add_argument("--kill", choices=KILLS, help="kill -9, under load")
    faults = [name for name in FAULTS if name not in KILLS]
    wrong.add_argument("--fault", choices=faults, help="anything else that goes wrong")
    say("--replicas", type=int, choices=(0, 1), default=0, help="that each reply waits for (0)")
    say("--p99", type=float, metavar="MS", help="fail if a hundredth takes longer")
    say("--errors", type=float, metavar="PERCENT", help="fail if more sends have no answer")
    say("--growth", type=float, metavar="MB", help=f"of memory; {GROWTH:g} for soak and hostile")
    say("--html", type=Path, metavar="FILE", help="locust's report")
    say("--csv", type=Path, metavar="PREFIX", help="locust's figures")
    say("--ui", type=int, metavar="PORT", help="watch it on locust's page, at this port")
    arguments = parser.parse_args()
    needed = FAULTS[arguments.fault].run_seconds if arguments.fault else 0
    arguments.seconds = arguments.seconds or max(SECONDS, needed)
    if arguments.seconds < needed:
        parser.error(f"--fault {arguments.fault} needs --seconds {needed} or more")
    if arguments.kill == "redis" and arguments.store == "sqlite":
        parser.error("--kill redis needs --store redis or redis-cluster")
    if arguments.fault in NEED_CLUSTER and arguments.store != "redis-cluster":
        parser.error(f"--fault {arguments.fault} needs --store redis-cluster")
    if arguments.replicas and arguments.fault != "failover":
        parser.error("--replicas needs --fault failover")
    if arguments.shape == HOSTILE and (arguments.devices or FEWEST_FOR_FAKES) < FEWEST_FOR_FAKES:
        parser.error(f"one fake in a hundred devices needs {FEWEST_FOR_FAKES} --devices or more")
    return arguments


def _some(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("give 1 or more")
    return number


if __name__ == "__main__":
    sys.exit(main())
