"""The kit for commands: `from veilcount.cli_kit import Telemetry`."""

from veilcount_client.integrations.cli_kit import Telemetry

__all__ = ["Telemetry"]
