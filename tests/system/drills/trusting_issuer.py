"""Planted: `veilcount issuer` that issues from any ledger, as whole as it may be."""

from __future__ import annotations

import sys
from unittest.mock import patch

from veilcount_aggregator.operate.cli.main import run
from veilcount_issuer import issuer

if __name__ == "__main__":
    with patch.object(issuer, "ledger_is_whole", lambda _: True):
        sys.exit(run(["issuer", *sys.argv[1:]]))
