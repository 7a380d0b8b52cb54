"""Identities: hosts that call by the tokens of another issuer."""
