"""The client's commands, which change nothing: `python -m veilcount_client doctor | check`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from veilcount_shared import definition_changes
from veilcount_shared.definition_changes import FORMATS, TEXT, load_change
from veilcount_shared.diagnostic_result import render
from veilcount_shared.errors import VeilcountError

from .diagnostics.doctor import examine
from .settings import read_settings

OK, TO_DO, WRONG_USAGE = range(3)
PROGRAM = "python -m veilcount_client"


def run(
    arguments: Sequence[str] | None = None, *, program: str = PROGRAM, epilog: str | None = None
) -> int:
    """Return 0 if all is well, 1 if something is to be done, 2 if a file cannot be used."""
    main, *_ = parsers(program, epilog)
    options = main.parse_args(arguments)
    try:
        text, ok = options.run(options)
    except (VeilcountError, ValueError) as error:  # of a file, of a variable
        print(error, file=sys.stderr)
        return WRONG_USAGE
    print(text)
    return OK if ok else TO_DO


def _doctor(options: argparse.Namespace) -> tuple[str, bool]:
    settings = read_settings(
        url=options.url, collections=options.collections, state=options.state_dir, key=options.key,
        relay=options.relay, relay_keys=options.relay_keys, shuffler=options.shuffler,
        issuer=options.issuer,
    )  # fmt: skip
    results = list(examine(settings, account=options.account))
    return render(results, as_json=options.json), all(result.ok for result in results)


def _check(options: argparse.Namespace) -> tuple[str, bool]:
    if options.against is None and options.format != TEXT:
        raise ValueError("--format is of a comparison: give --against")
    format_ = "json" if options.json else options.format
    changes = [
        definition_changes.render(load_change(file, options.against), format_)
        for file in options.files
    ]
    ok = options.exit_zero or all(change.ok for change in changes)
    return "\n".join(change.text for change in changes), ok


COMMANDS = {
    "doctor": (_doctor, "find out why nothing left this machine"),
    "check": (_check, "list what a definitions file asks for, and what it changes"),
}


def parsers(program: str = PROGRAM, epilog: str | None = None) -> list[argparse.ArgumentParser]:
    """Return the parser of the program, and of each command."""
    parser = argparse.ArgumentParser(prog=program, description="The client of veilcount.")
    parser.epilog = epilog
    commands = parser.add_subparsers(required=True, metavar=" | ".join(COMMANDS))
    by_name = {}
    for name, (function, help_text) in COMMANDS.items():
        by_name[name] = commands.add_parser(name, help=help_text)
        by_name[name].set_defaults(run=function)
        by_name[name].add_argument("--json", action="store_true", help="for programs")
    doctor, check = by_name.values()
    doctor.add_argument("--collections", metavar="FILE", help="default: VEILCOUNT_COLLECTIONS")
    doctor.add_argument("--url", help="default: VEILCOUNT_URL")
    doctor.add_argument("--key", help="default: VEILCOUNT_KEY")
    doctor.add_argument("--state-dir", metavar="DIRECTORY", help="default: VEILCOUNT_STATE")
    doctor.add_argument("--relay", metavar="URL", help="default: VEILCOUNT_RELAY")
    doctor.add_argument("--relay-keys", metavar="FILE", help="default: VEILCOUNT_RELAY_KEYS")
    doctor.add_argument("--shuffler", metavar="URL", help="default: VEILCOUNT_SHUFFLER")
    doctor.add_argument("--issuer", metavar="URL", help="default: VEILCOUNT_ISSUER")
    doctor.add_argument("--account", metavar="TOKEN", help="of an account, to ask the issuer of it")
    check.add_argument("files", metavar="new.toml", nargs="+")
    check.add_argument(
        "--against", metavar="REV",
        help="what devices have now: a revision of git, or another file",
    )  # fmt: skip
    check.add_argument("--format", choices=FORMATS, default=TEXT, help="how changes are written")
    check.add_argument(
        "--exit-zero", action="store_true", help="exit with 0 if a change needs a decision"
    )
    return [parser, doctor, check]


if __name__ == "__main__":
    sys.exit(run())
