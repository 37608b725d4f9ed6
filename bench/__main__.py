"""Every figure that veilcount claims about itself, measured; what is slow or poor fails."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

from . import accuracy, client, estimate, ingest, plan, randomize
from .table import Cell, as_json

PARTS = {
    "randomize": randomize.run,
    "plan": plan.run,
    "client": client.run,
    "ingest": ingest.run,
    "estimate": estimate.run,
    "accuracy": accuracy.run,
}


def main() -> int:
    """Run the parts, print a table for each; 1 if a target was missed."""
    asked = _arguments()
    tables = {}
    about = machine()
    print(", ".join(f"{key}: {value}" for key, value in about.items()))
    for name in [asked.part] if asked.part else PARTS:
        tables[name] = PARTS[name](quick=asked.quick)
        print(f"\n{tables[name]}", flush=True)
    missed = sum(table.missed for table in tables.values())
    print("\nevery target is met" if not missed else f"\ntargets missed: {missed}")
    if asked.json:
        asked.json.write_text(as_json(str(datetime.now(UTC).date()), about, tables))
    return 1 if missed else 0


def machine() -> dict[str, Cell]:
    """Return what matters of this machine, and nothing that names it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cores": cores, "cpu": _cpu(), "python": platform.python_version()}


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.machine()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("part", nargs="?", choices=PARTS, help="only this part")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter repetitions")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
