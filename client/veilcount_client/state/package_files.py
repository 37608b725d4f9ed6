"""The files of this package that are no modules: packagers of apps leave out what nobody names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from importlib.resources.abc import Traversable

from ..errors import StateError


class IncompletePackage(StateError):
    """The app was packaged without a file that the state needs; the message says what to do."""


@contextmanager
def package_file(name: str) -> Iterator[Traversable]:
    """Read a file or a folder of this package."""
    try:
        yield files(__package__) / name
    except OSError as error:
        package = __package__.partition(".")[0]
        raise IncompletePackage(
            f"{name} is missing from this app: have its packager include the data files of"
            f" {package} (PyInstaller: --collect-data {package})"
        ) from error
