"""The disks of simulated nodes: a model in memory, or the shipped storage on virtual files."""
