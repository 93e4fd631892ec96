"""Joins an engine and its applications into one core, and runs that core for real."""
