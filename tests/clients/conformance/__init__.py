"""One suite of scenarios, played by every client, with transcripts that must agree."""
