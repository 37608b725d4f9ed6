"""The web side of one deployment."""
