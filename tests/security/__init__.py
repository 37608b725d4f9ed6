"""What attackers of either side try, each by name, and what they get."""
