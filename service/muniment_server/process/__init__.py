"""What every process of the server needs: its assignment, its start, its stop signal, its pauses after failures."""
