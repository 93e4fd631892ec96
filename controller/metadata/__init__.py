"""Metadata as values: the image, the changes, and the pure rules that both sides use."""
