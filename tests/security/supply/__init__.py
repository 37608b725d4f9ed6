"""What veilcount is made of besides itself: listed, pinned, licensed, and asked about."""
