"""The exit codes of the command line."""

from __future__ import annotations

EXIT_INTERRUPTED = 130
