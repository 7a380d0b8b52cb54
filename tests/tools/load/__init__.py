"""How the service answers an open-loop mixed load: `make load` and `make load-report`."""
