"""veilcount: statistics under local differential privacy. Here are the client's public names."""

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
