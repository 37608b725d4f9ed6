"""The queries that a curator answers, one module each: importing this package registers them.

Another query is another module here: how it is written, its one spelling, what noise is added to
and with which sensitivity, its figures and intervals, and the sentence that describes it.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
