"""The page of a trusted curator's releases: ask with a dry run first, what is left, what was told.

`asking` is the form, `rows` how releases are told, `page` the page.
"""

from .page import pages as pages
