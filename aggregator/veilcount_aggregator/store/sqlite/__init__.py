"""The store of one machine: one SQLite file, shared by its processes."""

from .store import SqliteStore as SqliteStore
from .store import open_sqlite as open_sqlite
