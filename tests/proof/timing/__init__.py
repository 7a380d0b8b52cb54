"""How many bits a second a low caller learns from the time that its calls take, from refusals, and from embeddings.

`make timing` measures; `service/docs/threats.md` has the figures.
"""
