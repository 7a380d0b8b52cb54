"""Golden transcripts: what every RPC answers at every level, recorded once and compared ever after."""
