"""Bodies to columns: a fast decoder for valid bodies, `veilcount_shared` for all others."""

from .columns import DecodedBody as DecodedBody
from .columns import ReportColumns as ReportColumns
from .columns import SeriesColumns as SeriesColumns
from .decode import BodyTooLarge as BodyTooLarge
from .decode import UnsupportedBody as UnsupportedBody
from .decode import decode_body as decode_body
from .decode import too_large as too_large
from .group import DecodedGroup as DecodedGroup
from .group import RequestBody as RequestBody
from .group import decode_group as decode_group
