"""Checks and seed sweeps on Spark."""
