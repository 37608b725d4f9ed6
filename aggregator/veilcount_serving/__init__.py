"""What every server process needs: workers, logs, addresses, limits, findings."""
