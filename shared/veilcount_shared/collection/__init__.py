"""Definitions: what is asked, under which promise, and the fingerprint that names both."""

from .definition import Adjacency as Adjacency
from .definition import Cohort as Cohort
from .definition import Collection as Collection
from .definition import Linkage as Linkage
from .definition import Measure as Measure
from .definition import Model as Model
from .definition import Presence as Presence
from .definition import Takes as Takes
from .lint import Remark as Remark
from .lint import lint as lint
from .loading import load_collections as load_collections
from .toml import parse_collections as parse_collections
