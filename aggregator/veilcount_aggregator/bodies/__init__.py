"""Bodies to sheets: fast where a body is plainly right, by `veilcount_shared` where it is not."""

from .reading import TooLarge as TooLarge
from .reading import Unsupported as Unsupported
from .reading import read_body as read_body
from .reading import too_large as too_large
from .sheet import Body as Body
from .sheet import Sheet as Sheet
