"""`muniment export` and `muniment import`: the items of an agent in a file, each with its level.

Each format has a module, which reads a whole file into items before anything is written.
"""
