"""One collection's page: what its answers say, how sure that is, and what it cost.

`verdict` judges n; `asked` reads the address, `choices` writes others; `shares`, `numbers` and
`times` make charts, `section` what is told of one series; `uncounted` says what is not among the
answers, `defined` what was defined, and what changed.
"""

from .page import pages as pages
