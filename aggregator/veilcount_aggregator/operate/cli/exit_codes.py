"""The exit codes of the command line."""

from __future__ import annotations

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
