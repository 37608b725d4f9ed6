"""The endpoints and the pages of one deployment."""
