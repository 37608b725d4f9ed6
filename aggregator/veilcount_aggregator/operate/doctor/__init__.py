"""Checks of a deployment, each with a fix.

Nothing is changed. A check that cannot run is itself a finding.
"""

from veilcount_serving.findings import Finding as Finding
from veilcount_serving.findings import Severity as Severity
from veilcount_serving.findings import worst as worst

from ...queries.checks.store_checks import examine_store as examine_store
from .backup_checks import examine_backups as examine_backups
from .server_checks import examine_server as examine_server
from .sign_in_checks import examine_sign_in as examine_sign_in
