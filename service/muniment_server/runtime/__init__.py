"""The configuration of a server and its processes: supervisor and workers."""
