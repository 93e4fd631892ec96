"""Which names a topic may have: brokers and controllers say the same.

Source: Kafka's Topic.validate.
"""

import re

__all__ = ["topic_name_problem"]

_LENGTH_MAX = 249  # with "-" and a partition number it must still be a file name
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def topic_name_problem(name: str) -> str | None:
    """Why this cannot be a topic's name, as a sentence; None if it can."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is the name of a directory"
    if len(name) > _LENGTH_MAX:
        return f"Topic name is invalid: it has {len(name)} characters, and may have {_LENGTH_MAX}"
    if not _LEGAL.fullmatch(name):
        allowed = "ASCII letters and digits, '.', '_' and '-'"
        return f"Topic name is invalid: '{name}' has characters other than {allowed}"
    return None
