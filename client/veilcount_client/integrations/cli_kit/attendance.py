"""Whether somebody is there to read a notice and to decide: a terminal, and no build machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from ...settings import is_on

#: of build machines, by what each documents that it sets
CI_VARIABLES = (
    "CI", "APPVEYOR", "BITBUCKET_BUILD_NUMBER", "BUILDKITE", "CIRCLECI", "CODEBUILD_BUILD_ID",
    "CONTINUOUS_INTEGRATION", "DRONE", "GITHUB_ACTIONS", "GITLAB_CI", "JENKINS_URL",
    "TEAMCITY_VERSION", "TF_BUILD", "TRAVIS",
)  # fmt: skip


def is_attended(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a notice would be read. It goes to standard error, which a pipe leaves alone."""
    if any(is_on(environment.get(name, "")) for name in CI_VARIABLES):
        return False
    return sys.stderr is not None and sys.stderr.isatty()
