"""Disks of simulated nodes: a model, and the shipped storage on virtual files."""
