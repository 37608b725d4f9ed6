"""A store in SQL, apart from how its database is opened, locked and made durable."""
