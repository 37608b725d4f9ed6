"""Changes of definitions: what differs, what it costs a person, and whom to ask again."""

from .against import load_change as load_change
from .changes import FileChange as FileChange
from .changes import spending as spending
from .formats import FORMATS as FORMATS
from .formats import TEXT as TEXT
from .formats import render as render
