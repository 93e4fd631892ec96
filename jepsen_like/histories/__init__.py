"""Histories: what clients saw, kept, read, exchanged and drawn."""
