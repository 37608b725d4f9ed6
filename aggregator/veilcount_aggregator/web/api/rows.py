"""Endpoint of row-close requests: whoever knows a row's name closes it.

The name is in the body: paths are logged, by proxies and by HTTP libraries.
"""

from __future__ import annotations

from ...records.api_keys import Role
from ...store.retention.row_closing import close_row
from .endpoint import Api, endpoint
from .schemas import RowCloseRequest

PATH = "/v1/rows/close"


@endpoint("POST", PATH, Role.DEVICE, takes=RowCloseRequest, statuses=(204,), problems=("clock",))
def close_named_row(api: Api, body: RowCloseRequest) -> None:
    """Close a row: none of its slots accepts a report from now on.

    Knowledge of the 16 bytes of the pseudonym authorizes it. 204 as well if there is no such row.
    """
    aggregator = api.aggregator
    aggregator.guard.refuse_if_doubted()  # on a wrong day its row would not be looked for
    close_row(aggregator.store, aggregator.known().catalog.series, body, aggregator.today())
