"""The type of options that take a level."""

from __future__ import annotations

import click

from muniment_server.domain.classification import Classification

LEVEL = click.Choice(Classification, case_sensitive=False)
"""A level, in upper or lower case."""
