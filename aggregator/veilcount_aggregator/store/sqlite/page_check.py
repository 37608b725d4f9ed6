"""A look at the pages of a store that ends in time: a table after the other, as far as it gets."""

from __future__ import annotations

import sqlite3
import time

STEPS = 100_000  # of SQLite's machine, between two looks at the clock

_TABLES = "select name from sqlite_schema where type = 'table' order by name"


def is_damaged(database: sqlite3.Connection, seconds: float) -> bool:
    """Whether a damaged page was found within so many seconds.

    A table that takes longer than what is left is given up: `veilcount doctor --deep` reads all.
    """
    ends = time.monotonic() + seconds
    database.set_progress_handler(lambda: int(time.monotonic() > ends), STEPS)
    try:
        for (table,) in database.execute(_TABLES).fetchall():
            if database.execute(f"pragma quick_check('{table}')").fetchone() != ("ok",):
                return True
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
    finally:
        database.set_progress_handler(None, 0)
    return False
