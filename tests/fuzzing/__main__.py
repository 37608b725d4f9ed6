"""Fuzz decoders with atheris: `python -m tests.fuzzing [TARGET...] --seconds N`.

What raises is written to build/fuzzing/TARGET/finds, and the inputs that reach new code to corpus,
from where a later run goes on. `--keep` chooses from both what tests/vectors/bad pins.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WORK = ROOT / "build" / "fuzzing"
MAX_MEMORY = 1_500  # MB: numpy and the packages take 300 of them
MAX_SECONDS = 20  # of one input, which only a loop without end takes
#: the decoders, and what they are written in: their branches guide the search
INSTRUMENTED = [
    "veilcount_shared",
    "veilcount_aggregator.intake.decode",
    "veilcount_client.delivery.issuer",
    "veilcount_client.delivery.transport",
    "veilcount_issuer.app",
    "tomllib",
    "json",
]


def fuzz(name: str) -> None:
    """Fuzz one target in this process, which ends with it."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=INSTRUMENTED):
        targets = importlib.import_module("tests.fuzzing.targets").TARGETS
    atheris.Setup(sys.argv[:1] + sys.argv[3:], targets[name])
    atheris.Fuzz()


def start(name: str, seconds: int) -> int:
    """Fuzz one target for so long, in a process of its own; return its exit code."""
    seeds = importlib.import_module("tests.fuzzing.seeds")
    corpus, finds = (WORK / name / folder for folder in ("corpus", "finds"))
    for folder in (corpus, finds):
        folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds.seeds(name):
        (corpus / sha256(seed).hexdigest()).write_bytes(seed)
    (words := WORK / name / "words").write_text(seeds.dictionary(name))
    command = [sys.executable, "-m", "tests.fuzzing", "--inside", name, str(corpus)]
    options = {
        "max_total_time": seconds,
        "max_len": seeds.MAX_INPUT,
        "timeout": MAX_SECONDS,
        "rss_limit_mb": MAX_MEMORY,
        "artifact_prefix": f"{finds}/",
        "dict": words,
        "print_final_stats": 1,
    }
    return subprocess.run(
        [*command, *(f"-{key}={value}" for key, value in options.items())], cwd=ROOT, check=False
    ).returncode


def main() -> int:
    """Fuzz the named targets one after the other; exit code 1 if one has a find."""
    names = list(importlib.import_module("tests.fuzzing.targets").TARGETS)
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(names)}")
    parser.add_argument("--seconds", type=int, default=180, help="of each target (default: 180)")
    parser.add_argument("--keep", action="store_true", help="write tests/vectors/bad instead")
    options = parser.parse_args()
    if unknown := set(options.targets) - set(names):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    chosen = options.targets or names
    if options.keep:
        importlib.import_module("tests.fuzzing.bad_inputs").keep(chosen, WORK)
        return 0
    codes = [start(name, options.seconds) for name in chosen]
    return int(any(codes))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        fuzz(sys.argv[2])
    sys.exit(main())
