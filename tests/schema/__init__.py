"""What is declared: the contract, and the database with its grants and queries."""
