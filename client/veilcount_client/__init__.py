"""The device's side of veilcount."""
