"""A function of the bench in a process of its own, so that its memory and its end are its own."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def run(
    function: Callable[..., Any], *arguments: Any, environ: Mapping[str, str] | None = None
) -> Any:
    """Return the result of a function of a module; all that passes is JSON."""
    words = (function.__module__, function.__name__, json.dumps(arguments))
    return json.loads(python("-m", __name__, *words, environ=environ))


def python(*words: str, environ: Mapping[str, str] | None = None) -> str:
    """Run Python with these words; return what it prints."""
    done = subprocess.run(
        [sys.executable, *words],
        check=False,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | (environ or {}),
    )
    done.check_returncode()
    return done.stdout


def main(module: str, name: str, arguments: str) -> None:
    """Print the result of a function; one without a result prints for itself, at its exit."""
    result = getattr(importlib.import_module(module), name)(*json.loads(arguments))
    if result is not None:
        print(json.dumps(result), flush=True)
        os._exit(0)  # what a client still holds is of no interest


if __name__ == "__main__":
    main(*sys.argv[1:])
