"""Programs that the tests of this folder run, and no part of the project: those in Go, and Kubernetes' schemas."""
