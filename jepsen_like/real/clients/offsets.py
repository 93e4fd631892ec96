"""Offsets of acknowledged records, as libraries tell them."""

__all__ = ["known_offset"]


def known_offset(told: int | None) -> int | None:
    """A repeated record may be acknowledged without its offset: then it is a number below zero."""
    return told if told is not None and told >= 0 else None
