"""Celery's prefork workers, whose children leave by `os._exit`. Next to the Celery app:

from veilcount_client.integrations.celery import connect
connect()
"""

from __future__ import annotations

from ..delivery.live_workers import finish_all, store_all, wake_all


def connect() -> None:
    """Have each child send from its start, store after each task, and store all at its end."""
    from celery import signals  # noqa: PLC0415 - optional dependency

    signals.worker_process_init.connect(lambda **_: wake_all(), weak=False)
    signals.task_postrun.connect(lambda **_: store_all(), weak=False)
    signals.worker_process_shutdown.connect(lambda **_: finish_all(), weak=False)
