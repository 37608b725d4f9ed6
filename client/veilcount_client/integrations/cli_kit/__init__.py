"""A kit for commands: a sub-command to consent by, a notice, and delivery that nobody waits for."""

from .telemetry import Telemetry as Telemetry
