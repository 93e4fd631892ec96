"""Which names a topic may have, as far as a broker answers for it: the controller decides anew.

Source: Kafka's Topic.validate.
"""

import re

__all__ = ["is_valid_topic_name"]

_LENGTH_MAX = 249  # with "-" and a partition number it must still be a file name
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def is_valid_topic_name(name: str) -> bool:
    return (
        len(name) <= _LENGTH_MAX and name not in (".", "..") and _LEGAL.fullmatch(name) is not None
    )
