"""Plant the mistakes of wrong clients, one at a time: the vectors alone must reject each.

`python -m tests.vectors.wrong_clients` prints which files reject which mistake, and writes the
table of the README. A mistake is a wrong line of the reference implementation: `mistakes.toml`
lists them by area, each with the line that it takes the place of. With `--every` each file is run,
which takes some ten minutes on an idle machine.
"""

from __future__ import annotations

import functools
import inspect
import os
import struct
import sys
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pkgutil import resolve_name
from types import CodeType, FunctionType, ModuleType
from typing import Any

from veilcount_shared.errors import VeilcountError

from .conformance.checks import check, files
from .vector_files import FOLDER

README = FOLDER / "README.md"
#: how a client fails that computes something else
REJECTIONS = (
    AssertionError,
    VeilcountError,
    ValueError,
    ArithmeticError,
    LookupError,
    struct.error,
)
#: what selected mechanisms depend on; while all else is changed, they stay in their caches
SELECTION = ("veilcount_shared.epsilon", "veilcount_shared.mechanisms")


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong line, or a wrong constant where no right line is stated."""

    area: str
    name: str
    place: str
    wrong: str
    right: str = ""

    @property
    def module(self) -> str:
        """The module that it is planted in."""
        return self.place.split(":")[0]


def mistakes() -> list[Mistake]:
    """Return all mistakes, by area."""
    listed = tomllib.loads((FOLDER / "mistakes.toml").read_text(encoding="utf-8"))
    return [
        Mistake(area, name, f"veilcount_{row['in']}", row["wrong"], row.get("right", ""))
        for area, rows in listed.items()
        for name, row in rows.items()
    ]


# -- planting --------------------------------------------------------------------------------------


@contextmanager
def planted(mistake: Mistake) -> Iterator[None]:
    """Run the reference implementation with a mistake."""
    plant = _planted_line if mistake.right else _planted_constant
    _forget(mistake.module)
    try:
        with plant(mistake):
            yield
    finally:
        _forget(mistake.module)


@contextmanager
def _planted_line(mistake: Mistake) -> Iterator[None]:
    function = _function(resolve_name(mistake.place))
    right = function.__code__
    function.__code__ = _wrong_code(function, mistake)
    try:
        yield
    finally:
        function.__code__ = right


def _wrong_code(function: FunctionType, mistake: Mistake) -> CodeType:
    """Return the code of a function with the wrong line."""
    source = textwrap.dedent(inspect.getsource(function))
    if mistake.right not in source:
        raise LookupError(f"{mistake.name}: no line {mistake.right!r} in {mistake.place}")
    names = dict(function.__globals__)
    wrong = compile(source.replace(mistake.right, mistake.wrong), mistake.name, "exec", 1 << 24)
    exec(wrong, names)  # noqa: S102 - a line of mistakes.toml
    return _function(names[function.__name__]).__code__


def _function(found: Any) -> FunctionType:
    """Return the plain function within a property, a method or a cache."""
    for name in ("fget", "func", "__func__", "__wrapped__"):
        found = getattr(found, name, found)
    if not isinstance(found, FunctionType):
        raise TypeError(f"{found!r} is no function")
    return found


@contextmanager
def _planted_constant(mistake: Mistake) -> Iterator[None]:
    """Change a constant in all modules that name it."""
    name, module = mistake.place.split(":")[1], sys.modules[mistake.module]
    right = vars(module)[name]
    wrong = eval(mistake.wrong, dict(vars(module)))  # noqa: S307 - a line of mistakes.toml
    bound = [each for each in _modules() if vars(each).get(name) is right]
    _bind(bound, name, wrong)
    try:
        yield
    finally:
        _bind(bound, name, right)


def _bind(modules: list[ModuleType], name: str, value: object) -> None:
    for module in modules:
        setattr(module, name, value)


def _modules() -> list[ModuleType]:
    return [
        module
        for name, module in sorted(sys.modules.items())
        if name.startswith(("veilcount_shared", "veilcount_client", "tests.vectors"))
    ]


def _forget(changed: str) -> None:
    """Empty the caches of results that may depend on a module."""
    keeps = not changed.startswith((*SELECTION, "veilcount_shared.randomness"))
    for module in _modules():
        if not (keeps and module.__name__.startswith(SELECTION)):
            for cached in vars(module).values():
                if isinstance(cached, functools._lru_cache_wrapper):
                    cached.cache_clear()


# -- the run ---------------------------------------------------------------------------------------


def rejecting(mistake: Mistake, *, every: bool = False) -> list[str]:
    """Return the first file that rejects a mistake, or every file."""
    concerned = [name for name, codes in reached().items() if _concerns(mistake, codes)]
    with planted(mistake):
        rejected = (name for name in concerned if is_rejected(name))
        return list(rejected if every else islice(rejected, 1))


def is_rejected(name: str) -> bool:
    """Whether what is planted does not conform to a file."""
    try:
        check(name)
    except REJECTIONS:
        return True
    return False


@functools.cache
def reached() -> dict[str, set[CodeType]]:
    """Return the functions that the check of each file calls: no other mistake can show there."""
    calls: dict[str, set[CodeType]] = {}
    for name in files():
        _forget("veilcount_shared.randomness")
        codes: set[CodeType] = set()
        calls[name] = codes
        sys.setprofile(lambda frame, *_, codes=codes: codes.add(frame.f_code))
        try:
            check(name)
        finally:
            sys.setprofile(None)
    return calls


def _concerns(mistake: Mistake, codes: set[CodeType]) -> bool:
    """Whether a mistake is in a function that was called, or in a constant that one names."""
    if mistake.right:
        return _function(resolve_name(mistake.place)).__code__ in codes
    constant = mistake.place.split(":")[1]
    return any(constant in code.co_names for code in codes)


def run(*, every: bool = False) -> dict[Mistake, list[str]]:
    """Return the first file that rejects each mistake, or every file."""
    listed = mistakes()
    reached()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        rejected = pool.map(functools.partial(rejecting, every=every), listed)
        return dict(zip(listed, rejected, strict=True))


def table(rejected: dict[Mistake, list[str]]) -> str:
    """Return the table of the README: of each area the mistakes, and how many each file rejects.

    Each counts at the first file, in the order of `checks.py`, or with every file.
    """
    lines = ["| area | mistakes | rejected by |", "|---|---|---|"]
    for area in dict.fromkeys(mistake.area for mistake in rejected):
        rows = [names for mistake, names in rejected.items() if mistake.area == area]
        counts = Counter(name for names in rows for name in {*map(_group, names)})
        ordered = sorted(counts, key=lambda name: (-counts[name], name))
        names = ", ".join(f"`{name}` {counts[name]}" for name in ordered)
        lines.append(f"| {area} | {len(rows)} | {names} |")
    return "\n".join([*lines, f"| **all** | **{len(rejected)}** | |"])


def _group(name: str) -> str:
    """Return a file's name, and one name for all good bodies."""
    return name if "bad_" in name or "/" not in name else "wire/*.json"


def main() -> int:
    """Print the files that reject each mistake, and write the table; 1 if one passes."""
    rejected = run(every="--every" in sys.argv)
    for mistake, names in rejected.items():
        print(f"{mistake.area}: {mistake.name}: {', '.join(names) or 'PASSES'}")
    text = README.read_text(encoding="utf-8")
    head, tail = text[: text.index("| area |")], text[text.index("| **all** |") :]
    rest = tail[tail.index("\n") :]
    README.write_text(head + table(rejected) + rest, encoding="utf-8")
    return int(not all(rejected.values()))


if __name__ == "__main__":
    sys.exit(main())
