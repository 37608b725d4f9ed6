"""The store in one SQLite file, shared by the processes of one machine."""

from .store import SqliteStore as SqliteStore
from .store import open_sqlite as open_sqlite
