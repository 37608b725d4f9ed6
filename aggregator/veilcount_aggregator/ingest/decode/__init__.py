"""Bodies to sheets: fast where a body is plainly right, by `veilcount_shared` where it is not."""

from .columns import DecodedBody as DecodedBody
from .columns import ReportColumns as ReportColumns
from .decode import BodyTooLarge as BodyTooLarge
from .decode import UnsupportedBody as UnsupportedBody
from .decode import decode_body as decode_body
from .decode import too_large as too_large
