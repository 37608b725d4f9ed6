"""Pages for people: a view and a template each, declared with `@page` (see `pages`).

`layout` routes to them and checks access. They show what `queries` answer, in process: no request
leaves the server, and nothing is fetched from elsewhere.
"""

from .layout import Dashboard as Dashboard
