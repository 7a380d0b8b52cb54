"""Golden transcripts: what every RPC answers at every level, recorded once and compared ever after.

`python -m tests.golden --check` compares. `python -m tests.golden` records them again: only where an answer is meant
to change. A changed text of an error goes to changed_texts.txt instead, and the transcripts stay.
"""
