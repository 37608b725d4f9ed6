"""The device's side of veilcount: record, randomize, keep account, send."""

from .client import Client as Client
from .client import Person as Person
from .errors import ClientError as ClientError
from .errors import NotUsable as NotUsable
from .errors import UnknownCollection as UnknownCollection
from .explaining import Explanation as Explanation
from .losses import Loss as Loss
from .receipt import Receipt as Receipt
