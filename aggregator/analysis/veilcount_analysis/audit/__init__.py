"""The black-box privacy audit: what do the bytes a device sends give away at least?"""

from .audit import AuditResult as AuditResult
from .audit import audit as audit
from .audit import judge as judge
