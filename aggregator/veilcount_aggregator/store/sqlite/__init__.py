"""The store in one SQLite file, shared by the processes of one machine."""

from .engine import SqliteEngine as SqliteEngine
