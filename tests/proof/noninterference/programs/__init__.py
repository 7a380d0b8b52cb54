"""Programs: what callers do, drawn from small alphabets, so that they meet in the same names."""
