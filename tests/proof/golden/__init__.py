"""Scenes that call every RPC at every level, and the comparison of what two commits answer: `make diff`.

The scenes of the earlier commit are played on both servers, so that both are asked the same. `changed.md` says which
commit that is, and which differences are meant.
"""
