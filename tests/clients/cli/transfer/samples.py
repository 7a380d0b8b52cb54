"""Texts for files."""

HOSTILE = 'a\nb\r\n\u2028\u2029\x85\x1b[31m 👩‍💻 \u202e \\n "\' § {"kind": "memory"}'
"""What ends a line, steers a terminal, or looks like JSON."""
