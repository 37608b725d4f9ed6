"""The releases tab: requests with a dry run first, the remaining budget, past releases."""
