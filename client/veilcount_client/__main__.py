"""`python -m veilcount_client doctor | check`: in the base install, and harmless."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence

from veilcount_shared import load_collections
from veilcount_shared.errors import VeilcountError

from .diagnostics.definition_diff import compare
from .diagnostics.doctor import examine
from .diagnostics.finding import DiagnosticResult, tell
from .settings import read_settings

WELL, TO_DO, NOT_USABLE = range(3)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if all is well, 1 if something is to be done, 2 if a file cannot be used."""
    given = _parser().parse_args(arguments)
    try:
        findings = list(given.run(given))
    except (VeilcountError, ValueError) as error:  # of a file, of a variable
        print(error, file=sys.stderr)
        return NOT_USABLE
    print(tell(findings, as_json=given.json))
    return WELL if all(each.well for each in findings) else TO_DO


def _doctor(given: argparse.Namespace) -> Iterable[DiagnosticResult]:
    settings = read_settings(
        url=given.url, collections=given.collections, state=given.state_dir, key=given.key
    )
    return examine(settings)


def _check(given: argparse.Namespace) -> Iterable[DiagnosticResult]:
    old = None if given.was is None else load_collections(given.was, legacy=True)
    return compare(load_collections(given.file), old)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m veilcount_client", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="doctor | check")
    doctor = commands.add_parser("doctor", help="why nothing left this machine")
    doctor.add_argument("--collections", metavar="FILE", help="default: VEILCOUNT_COLLECTIONS")
    doctor.add_argument("--url", help="default: VEILCOUNT_URL")
    doctor.add_argument("--key", help="default: VEILCOUNT_KEY")
    doctor.add_argument("--state-dir", metavar="DIRECTORY", help="default: VEILCOUNT_STATE")
    doctor.set_defaults(run=_doctor)
    check = commands.add_parser("check", help="what a definitions file asks for, and changes")
    check.add_argument("file", metavar="new.toml")
    check.add_argument("--was", metavar="old.toml", help="the file that devices have now")
    check.set_defaults(run=_check)
    for each in (doctor, check):
        each.add_argument("--json", action="store_true", help="for programs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
