"""Whether a call is let in, and what it waits for before it runs."""
