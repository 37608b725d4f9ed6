"""The process of a sender: `python -m veilcount_client.integrations.cli_kit`, of a command."""

from .sender import main

main()
