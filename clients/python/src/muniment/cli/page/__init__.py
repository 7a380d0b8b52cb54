"""`muniment agent show`: one agent as an HTML page.

`reading` reads everything before anything is written, and `rendering` fills the template.
"""
