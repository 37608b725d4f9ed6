"""What is stored by name: definitions, keys, sessions."""
