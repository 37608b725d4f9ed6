"""This process as if on another platform: `python -m tests.other_platform PLATFORM PACKAGE MODULE`.

Nothing here runs on Windows or macOS. What can be simulated honestly is absence: of every module,
function and constant that typeshed says the platform does not have, and of the files of Linux. On
Windows no folder is opened, no file that is open is removed or renamed, and none is renamed over
another. The standard library and other packages are imported before, and work as on Linux; our own
modules after.
"""

from __future__ import annotations

import ast
import fcntl
import os
import pkgutil
import runpy
import select
import selectors
import shutil
import signal
import socket
import socketserver
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module, util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

PLATFORMS = ("win32", "darwin")
LINUX_FILES = ("/etc/machine-id", "/proc/", "/sys/", "/var/lib/dbus/")
REDUCED: tuple[ModuleType, ...] = (os, select, signal, socket, time)
OURS = "veilcount"
IMPORTED_LATE = {"veilcount_aggregator": "opendp.prelude"}  # by commands
SPECIAL = {"__main__", "integrations", "testing"}  # each for whom it integrates with
F_FULLFSYNC = 51
IN_USE = 32  # ERROR_SHARING_VIOLATION


# -- what a platform has ---------------------------------------------------------------------------


def absent_names(module: str, platform: str) -> set[str]:
    """Return what a module of the standard library has on Linux and not on a platform."""
    return _names(module, "linux") - _names(module, platform)


def absent_modules(platform: str) -> set[str]:
    """Return the modules of which nothing is left on a platform."""
    stubs = {path.stem for path in _stubs().glob("*.pyi")} & sys.stdlib_module_names
    return {name for name in stubs if _names(name, "linux") and not _names(name, platform)}


def _stubs() -> Path:
    (folder,) = util.find_spec("mypy").submodule_search_locations  # type: ignore[union-attr,misc]
    return Path(folder) / "typeshed" / "stdlib"


def _names(module: str, platform: str) -> set[str]:
    stub = _stubs() / f"{module}.pyi"
    path = stub if stub.exists() else _stubs() / module / "__init__.pyi"
    body = ast.parse(path.read_text("utf-8")).body
    return {name for name in _defined(body, platform) if not name.startswith("_")}


def _defined(body: list[ast.stmt], platform: str) -> Iterator[str]:
    system = SimpleNamespace(platform=platform, version_info=sys.version_info)
    for statement in body:
        match statement:
            case ast.If():
                test = compile(ast.Expression(statement.test), "stub", "eval")
                holds = eval(test, {"sys": system})  # noqa: S307 - a condition of typeshed
                yield from _defined(statement.body if holds else statement.orelse, platform)
            case ast.FunctionDef() | ast.ClassDef():
                yield statement.name
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                yield name
            case ast.ImportFrom(module="_socket" | "posix"):
                yield from (alias.asname or alias.name for alias in statement.names)


# -- a platform ------------------------------------------------------------------------------------


def become(platform: str, package: str) -> None:
    """Be on a platform from now on; what a package of ours imports is imported before."""
    _import_others(package)
    vars(tempfile)["_os"] = SimpleNamespace(**vars(os))  # it removes open files on Linux
    for name in absent_modules(platform):
        sys.modules[name] = None  # type: ignore[assignment]
    for module in REDUCED:
        for name in absent_names(module.__name__, platform):
            with suppress(AttributeError):  # which this version of Python does not have either
                delattr(module, name)
    sys.addaudithook(_hide_linux)
    if platform == "darwin":
        vars(fcntl)["F_FULLFSYNC"] = F_FULLFSYNC  # which Linux refuses, as some file systems do
    if platform == "win32":
        vars(selectors)["DefaultSelector"] = selectors.SelectSelector  # others need what is gone
        vars(socketserver)["_ServerSelector"] = selectors.SelectSelector
        sys.addaudithook(_refuse_folders)
        _refuse_files_in_use()
    sys.platform = platform


def _import_others(package: str) -> None:
    import_module(IMPORTED_LATE.get(package, package))
    for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        if not SPECIAL & {*module.name.split(".")}:
            import_module(module.name)
    for name in [name for name in sys.modules if name.startswith(OURS)]:
        del sys.modules[name]


def _hide_linux(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and str(arguments[0]).startswith(LINUX_FILES):
        raise FileNotFoundError(2, "not on this platform", str(arguments[0]))


def _refuse_folders(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open" or arguments[1] is not None:  # `tempfile` opens a file in it so
        return
    if isinstance(arguments[0], str) and Path(arguments[0]).is_dir():
        raise PermissionError(13, "a folder is not opened on this platform", arguments[0])


def _refuse_files_in_use() -> None:
    vars(shutil)["_use_fd_functions"] = False
    list_open = _open_files(os.scandir, os.readlink)
    for name, targets in {"unlink": 1, "remove": 1, "rename": 2, "replace": 2}.items():
        setattr(os, name, _refusing(getattr(os, name), targets, list_open))
    original = os.rename

    def rename(source: str, target: str) -> None:
        if os.path.lexists(target):
            raise FileExistsError(17, "exists", str(target))
        original(source, target)

    os.rename = rename  # type: ignore[assignment]


def _open_files(
    scan: Callable[[str], Any], read_link: Callable[[str], str]
) -> Callable[[], set[str]]:
    def list_open() -> set[str]:
        found = set()
        for entry in scan("/proc/self/fd"):
            with suppress(OSError):
                found.add(read_link(entry.path))
        return found

    return list_open


def _refusing(
    original: Callable[..., None], targets: int, list_open: Callable[[], set[str]]
) -> Callable[..., None]:
    def refusing(*paths: Any) -> None:
        for path in paths[:targets]:
            if os.path.realpath(path) in list_open():
                raise PermissionError(13, f"[WinError {IN_USE}] in use by a process", str(path))
        original(*paths)

    return refusing


if __name__ == "__main__":
    become(sys.argv[1], sys.argv[2])
    del sys.argv[:3]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
