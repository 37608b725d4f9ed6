"""The queries that a curator answers, registered by importing this package registers them.

Another query is another module here: its syntax and canonical form, the parts that noise is
added to and their sensitivities, its figures with intervals, and its description.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
