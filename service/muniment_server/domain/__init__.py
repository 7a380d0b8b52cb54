"""The domain in pure Python: levels, names, tokens, records, errors."""
