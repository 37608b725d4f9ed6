"""What is wrong with a deployment, and how it is mended: tables of small checks, run from outside.

Nothing is changed, nothing is fixed here; whatever cannot be looked at is a finding itself.
"""

from .backup_checks import examine_backups as examine_backups
from .finding import Finding as Finding
from .finding import Severity as Severity
from .finding import worst as worst
from .server_checks import examine_server as examine_server
from .store_checks import examine_store as examine_store
