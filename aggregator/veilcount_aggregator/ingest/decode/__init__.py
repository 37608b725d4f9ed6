"""Bodies to sheets: fast where a body is plainly right, by `veilcount_shared` where it is not."""

from .columns import Body as Body
from .columns import Sheet as Sheet
from .decode import TooLarge as TooLarge
from .decode import Unsupported as Unsupported
from .decode import read_body as read_body
from .decode import too_large as too_large
