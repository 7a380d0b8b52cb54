"""What `make dist` builds, installed and run elsewhere."""
