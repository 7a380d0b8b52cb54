"""What Muniment is about, in pure Python: levels, names, tokens, records, errors."""
