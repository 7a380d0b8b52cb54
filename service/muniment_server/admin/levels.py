"""A level on the command line, as the server's own value."""

from __future__ import annotations

import click

from muniment_server.domain.classification import Classification

LEVEL = click.Choice(Classification, case_sensitive=False)
"""A level, in upper or lower case."""
