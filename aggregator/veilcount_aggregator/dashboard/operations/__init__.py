"""The page of whoever keeps it running: what is wrong, what became of reports, how fast, by whom.

`verdicts`, `rooms`, `service` and `state` are one section each, `page` the page.
"""

from .page import pages as pages
