"""The page of what is asked: all definitions, a preview of new ones before they are pushed, close.

`given` reads what was sent, `preview` says what it would change, `page` is the page.
"""

from .page import pages as pages
