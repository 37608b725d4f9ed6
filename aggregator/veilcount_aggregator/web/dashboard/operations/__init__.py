"""The operations page: health, findings, verdicts, latency, the audit log."""
