"""The store of one machine: one SQLite file, shared by its processes."""

from .engine import SqliteStore as SqliteStore
from .engine import open_sqlite as open_sqlite
