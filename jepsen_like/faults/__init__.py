"""Faults as values: which, on whom, when, and how it is known that they bit."""
