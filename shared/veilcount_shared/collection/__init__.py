"""Definitions of collections: parsing, validation, canonical form and fingerprint."""

from ..enums import Adjacency as Adjacency
from ..enums import Cohort as Cohort
from ..enums import Held as Held
from ..enums import Linkage as Linkage
from ..enums import Measure as Measure
from ..enums import Model as Model
from ..enums import Noise as Noise
from ..enums import Presence as Presence
from ..enums import Takes as Takes
from .definition import Collection as Collection
from .lint import Remark as Remark
from .lint import describe_held as describe_held
from .lint import lint as lint
from .loading import load_collections as load_collections
from .token_answers import answers_by_consent as answers_by_consent
from .token_answers import describe_answers as describe_answers
from .toml import parse_collections as parse_collections
