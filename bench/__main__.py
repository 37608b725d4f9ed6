"""Every figure that veilcount claims about itself, measured; what is slow or poor fails."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

from veilcount_aggregator.server import blas_threads  # noqa: F401 - before numpy, as in a server

from . import combinations
from .stated import compared
from .table import Cell, Table, as_json

#: a module each, in the order in which all of them run
PARTS = (
    *("randomize", "plan", "client", "device", "ingest", "estimate", "accuracy", "strings"),
    *("moments", "tokens", "redeem", "relay", "gateway", "trends", "central", "linkage"),
    *("combinations", "memory", "durability", "heights", "commit-calls", "groups", "workers"),
    *("growth", "scale", "reads", "retention", "event-loop", "exports", "handshake", "figures"),
    *("pages", "filling", "install", "shards", "reshard", "stalls", "upgrade", "worst-body"),
    "shuffler",
)


def main() -> int:
    """Run the parts, print a table for each; 1 if a target was missed."""
    arguments = _arguments()
    tables = {}
    about = machine()
    print(", ".join(f"{key}: {value}" for key, value in about.items()))
    for name in arguments.parts or PARTS:
        tables[name] = _run(name, arguments)
        print(f"\n{tables[name]}", flush=True)
    missed = sum(table.missed for table in tables.values())
    print("\nevery target is met" if not missed else f"\ntargets missed: {missed}")
    if arguments.markdown and "combinations" in tables:
        combinations.write(tables["combinations"])
    if arguments.json:
        arguments.json.write_text(as_json(str(datetime.now(UTC).date()), about, tables))
    return 1 if missed else 0


def _run(part: str, arguments: argparse.Namespace) -> Table:
    module = importlib.import_module(f".{part.replace('-', '_')}", __package__)
    run = getattr(module, "run_long", module.run) if arguments.long else module.run
    return compared(part, run(quick=arguments.quick))


def machine() -> dict[str, Cell]:
    """Return what matters of this machine, and nothing that names it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cores": cores,
        "cpu": _cpu(),
        "memory, GB": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9),
        "kernel": platform.release().partition("-")[0],
        "python": platform.python_version(),
        "load before": round(os.getloadavg()[0], 1),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.machine()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    names = ", ".join(PARTS)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"only these: {names}")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter repetitions")
    parser.add_argument("--long", action="store_true", help="retention: ten million rows too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results there")
    parser.add_argument(
        "--markdown", action="store_true", help="write `combinations` into docs/threat-model.md"
    )
    arguments = parser.parse_args()
    if unknown := [part for part in arguments.parts if part not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}; there are {names}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
