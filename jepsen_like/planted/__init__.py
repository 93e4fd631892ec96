"""Bugs to plant: what the simulator must find."""
