"""The adapters. Each is a program: `python -m PACKAGE.adapters.NAME`."""
