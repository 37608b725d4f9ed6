"""A store without a clock of its own, so that a test decides which clocks differ."""

from __future__ import annotations

from ...conftest import store  # noqa: F401 - a fixture
