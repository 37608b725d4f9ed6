"""The privacy filter: each central release is charged to a budget that outlives the process."""
