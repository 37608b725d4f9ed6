"""gunicorn, with or without --preload. In gunicorn.conf.py:

from veilcount_client.integrations.gunicorn import post_worker_init, worker_exit
"""

from __future__ import annotations

from ..delivery.live_workers import finish_all, wake_all


def post_worker_init(worker: object) -> None:  # noqa: ARG001 - gunicorn's signature
    """Send from this worker; the app is loaded by now, preloaded or not."""
    wake_all()


def worker_exit(server: object, worker: object) -> None:  # noqa: ARG001 - gunicorn's signature
    """Store before the worker leaves, also after a time-out's abort."""
    finish_all()
