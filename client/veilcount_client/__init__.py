"""The client library of veilcount: it records, randomizes, accounts for epsilon, and sends."""

from .client import Client as Client
from .client import Person as Person
from .diagnostics.explain import Explanation as Explanation
from .errors import ClientError as ClientError
from .errors import NotAnAnswer as NotAnAnswer
from .errors import NotAPerson as NotAPerson
from .errors import NotUsable as NotUsable
from .errors import UnknownCollection as UnknownCollection
from .errors import UnknownValue as UnknownValue
from .recording.known_definitions import RowName as RowName
from .recording.receipt import Receipt as Receipt
from .state.losses import Loss as Loss
