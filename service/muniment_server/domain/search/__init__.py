"""What search makes of texts, before and after the database: pure Python, the same for every level."""
