"""A simulated quorum: its nodes, its faults, and what must hold after every event."""
