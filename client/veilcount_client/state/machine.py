"""The id that a machine's system gave it at its installation: a copied state has another around it.

Read without starting a process, so that it is the same at every start: a command that is missing
once would make a person of today another one tomorrow. A state's file holds a digest of it alone.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_WINDOWS_KEY, _WINDOWS_VALUE = r"SOFTWARE\Microsoft\Cryptography", "MachineGuid"
_UUID_BYTES = 16
_WAIT_SECONDS = 5


def machine_id() -> str:
    """Return the machine's id; empty where its system has none."""
    try:
        if sys.platform == "win32":
            return _windows_id()
        if sys.platform == "darwin":
            return _macos_id()
    except (OSError, AttributeError, ImportError):  # a Python, or a system, without these calls
        return ""
    return next((_read(path) for path in _FILES if path.is_file()), "").strip()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _windows_id() -> str:
    """Return the MachineGuid, of which a program of 32 bits would see another registry's."""
    winreg: Any = import_module("winreg")  # of Windows alone
    access = winreg.KEY_READ | winreg.KEY_WOW64_64KEY
    with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _WINDOWS_KEY, 0, access) as key:
        return str(winreg.QueryValueEx(key, _WINDOWS_VALUE)[0])


def _macos_id() -> str:
    """Return the IOPlatformUUID [gethostuuid(2); SQLite's os_unix.c asks for it likewise]."""
    import ctypes  # noqa: PLC0415 - milliseconds, of macOS alone

    uuid, wait = (ctypes.c_ubyte * _UUID_BYTES)(), (ctypes.c_long * 2)(_WAIT_SECONDS, 0)
    if ctypes.CDLL(None).gethostuuid(uuid, wait):  # the second is a struct timespec
        return ""
    return bytes(uuid).hex()
