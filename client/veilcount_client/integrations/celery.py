"""Celery's prefork workers, whose children leave by `os._exit`. Next to the Celery app:

from veilcount_client.integrations.celery import connect
connect()
"""

from __future__ import annotations

from .processes import finish_all, store_all, wake_all


def connect() -> None:
    """Have each child send from its start, store after each task, and store all at its end."""
    from celery import signals  # noqa: PLC0415 - optional dependency

    signals.worker_process_init.connect(_begin, weak=False)
    signals.task_postrun.connect(_after_task, weak=False)
    signals.worker_process_shutdown.connect(_end, weak=False)


def _begin(**_: object) -> None:
    wake_all()


def _after_task(**_: object) -> None:
    store_all()


def _end(**_: object) -> None:
    finish_all()
