"""Checks of a deployment, each with a fix.

Nothing is changed. A check that cannot run is itself a finding.
"""

from .backup_checks import examine_backups as examine_backups
from .finding import Finding as Finding
from .finding import Severity as Severity
from .finding import worst as worst
from .server_checks import examine_server as examine_server
from .store_checks import examine_store as examine_store
