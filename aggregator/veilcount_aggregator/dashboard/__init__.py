"""Pages for people: one module, one template and (where it draws by itself) one script a page.

`frame` is what all pages share; `entrance` the way in; each other module is a page. They say what
`answers` say, in process; nothing is asked over HTTP, and nothing is fetched from elsewhere.
"""

from .registry import dashboard as dashboard
