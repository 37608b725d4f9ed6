"""veilcount: statistics under local differential privacy. Here are the client's public names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import veilcount_client
from veilcount_shared.lazy_names import lazy_names

if TYPE_CHECKING:
    from veilcount_client import Client as Client
    from veilcount_client import ClientError as ClientError
    from veilcount_client import Explanation as Explanation
    from veilcount_client import Loss as Loss
    from veilcount_client import NotAnAnswer as NotAnAnswer
    from veilcount_client import NotAPerson as NotAPerson
    from veilcount_client import NotUsable as NotUsable
    from veilcount_client import Person as Person
    from veilcount_client import Receipt as Receipt
    from veilcount_client import RowName as RowName
    from veilcount_client import UnknownCollection as UnknownCollection
    from veilcount_client import UnknownValue as UnknownValue

__all__ = veilcount_client.__all__
__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "veilcount_client"))
