"""One server process: assembled, served and kept in order."""
