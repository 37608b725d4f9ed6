"""Definitions: what is asked, under which promise, and the fingerprint that names both."""

from .definition import Collection as Collection
from .held import explain_held as explain_held
from .lint import Remark as Remark
from .lint import lint as lint
from .loading import load_collections as load_collections
from .toml import parse_collections as parse_collections
from .words import Adjacency as Adjacency
from .words import Cohort as Cohort
from .words import Held as Held
from .words import Linkage as Linkage
from .words import Measure as Measure
from .words import Model as Model
from .words import Presence as Presence
from .words import Takes as Takes
