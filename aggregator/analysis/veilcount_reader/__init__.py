"""Read results over HTTP, for notebooks: `Reader(url, key).estimate("theme").to_pandas()`.

Needs requests and numpy; pandas, polars, pyarrow and matplotlib only where they are asked for.
"""

from .reader import AnswerRefused as AnswerRefused
from .reader import KeyRefused as KeyRefused
from .reader import NotConfirmed as NotConfirmed
from .reader import NotFound as NotFound
from .reader import Reader as Reader
from .reader import ReaderError as ReaderError
from .reader import Unreachable as Unreachable
from .results import Answer as Answer
from .results import CentralRelease as CentralRelease
from .results import ComparisonResult as ComparisonResult
from .results import Estimate as Estimate
from .results import ReleaseList as ReleaseList
