"""Read results over HTTP, for notebooks: `Reader(url, key).estimate("theme").to_pandas()`.

Needs requests and numpy; pandas or pyarrow only for their tables.
"""

from .errors import AnswerRefused as AnswerRefused
from .errors import KeyRefused as KeyRefused
from .errors import NotFound as NotFound
from .errors import ReaderError as ReaderError
from .errors import Unreachable as Unreachable
from .reader import Reader as Reader
from .results import Answer as Answer
from .results import ComparisonResult as ComparisonResult
from .results import Estimate as Estimate
