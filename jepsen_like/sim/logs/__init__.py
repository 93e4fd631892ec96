"""What logs hold, over all replicas and all time."""
