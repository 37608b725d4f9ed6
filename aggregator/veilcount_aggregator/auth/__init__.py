"""Who may do what: API keys, browser sessions, log-in links, rate limits and the audit log."""
