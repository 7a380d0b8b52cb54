"""What runs beside the calls: erases deleted agents, seals the audit log, counts for the metrics."""
