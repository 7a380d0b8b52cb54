"""Faults: what is lost, and what comes back, when processes are killed, stopped or refused what they need."""
