"""Real processes: starting, stopping and breaking whole local clusters."""
