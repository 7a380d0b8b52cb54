"""How well search finds: real questions through the real service, beside what people use otherwise."""
