"""What must hold of a quorum after every event."""
