"""Domains of values: one, crossed with private attributes, or several by their names.

A domain maps any Python object to an input of the mechanism. It is *total*: whether a report
exists must never depend on its value, so a number beyond its range clamps, an unknown choice is
`other` where that is declared, and what fits nowhere is replaced by a uniformly drawn input. Such a
draw keeps epsilon (it happens before the randomizer) and pulls the estimate toward uniform.
"""

from .choices import Boolean as Boolean
from .choices import Choice as Choice
from .choices import Cross as Cross
from .choices import find_label as find_label
from .interface import ValuePart as ValuePart
from .labels import MAX_LABEL as MAX_LABEL
from .labels import MAX_VALUES as MAX_VALUES
from .labels import Label as Label
from .labels import check_label as check_label
from .labels import check_labels as check_labels
from .labels import is_normalized as is_normalized
from .labels import normalized as normalized
from .numbers import GRID as GRID
from .numbers import GRID_BITS as GRID_BITS
from .numbers import MAX_FEATURES as MAX_FEATURES
from .numbers import MIN_FEATURES as MIN_FEATURES
from .numbers import Features as Features
from .numbers import Number as Number
from .numbers import format_fraction as format_fraction
from .numbers import is_number as is_number
from .questions import MAX_QUESTIONS as MAX_QUESTIONS
from .questions import MAX_TABLE as MAX_TABLE
from .questions import MIN_QUESTIONS as MIN_QUESTIONS
from .questions import Questions as Questions
from .several import FEWEST_MOST as FEWEST_MOST
from .several import MAX_LISTED as MAX_LISTED
from .several import Several as Several
from .strings import BUCKET_BITS as BUCKET_BITS
from .strings import HALVES as HALVES
from .strings import HASH_BITS as HASH_BITS
from .strings import PREFIX_BITS as PREFIX_BITS
from .strings import PREFIXES as PREFIXES
from .strings import OpenStrings as OpenStrings

Domain = Boolean | Choice | Several | Number | Cross | OpenStrings | Features | Questions
