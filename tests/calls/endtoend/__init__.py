"""Real data through the Python client, a served process and its database, held against a model."""
