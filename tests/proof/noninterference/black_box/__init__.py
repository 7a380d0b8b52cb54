"""A black-box test of noninterference for any agent memory.

Imports of the package are relative, so that the folder runs under any name: alone, or inside a repository.
"""
