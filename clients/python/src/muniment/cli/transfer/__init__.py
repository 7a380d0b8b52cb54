"""`muniment export` and `muniment import`: an agent's items in a file, each with its level.

A module for each format that is read; they give items, all of a file before anything is written.
"""
