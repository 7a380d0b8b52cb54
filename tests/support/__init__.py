"""What the tests stand on: a Postgres of their own, a database per test, a real server, and short words to call it."""
