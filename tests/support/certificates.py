"""Certificates made by openssl."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make(place: Path, name: str, *options: str) -> None:
    """Make a key and a certificate for it, signed by itself unless *options* name an authority."""
    names = ["-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command = ["openssl", "req", "-x509", *curve, *names, *options]
    subprocess.run(command, cwd=place, check=True, capture_output=True)
