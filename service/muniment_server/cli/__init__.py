"""The command line: `muniment`. A module for each command or group, loaded when it is called."""

from muniment_server.cli.root import main

__all__ = ["main"]
