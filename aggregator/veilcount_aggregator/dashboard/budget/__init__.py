"""What a person reveals: promised, counted, and what it means to somebody who tries to guess."""

from .page import pages as pages
