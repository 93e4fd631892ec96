"""What is named as Spark names it.

    table:NAME               a table of histories in a catalog
    SCHEME:/…/x.parquet      a table of histories
    SCHEME:/…/x.msgpack      a file of one history, or a pattern of such names
    SCHEME:/…/runs           a name without a suffix: every history.msgpack in it and below it

Only the name is looked at, and no store is asked.
"""

import re

__all__ = ["CATALOG", "HISTORY", "home", "is_directory", "is_file", "is_in_store", "is_table"]

CATALOG = "table:"
HISTORY = "history.msgpack"
_FILES = ".parquet"


def is_in_store(name: str) -> bool:
    """Is it no name of a file of this machine?"""
    return re.match(rf"{CATALOG}|[A-Za-z][A-Za-z0-9+.-]+:/", name) is not None


def is_table(name: str) -> bool:
    return name.startswith(CATALOG) or name.rstrip("/").endswith(_FILES)


def is_file(name: str) -> bool:
    return not is_table(name) and "." in name.rpartition("/")[2]


def is_directory(name: str) -> bool:
    return not is_table(name) and not is_file(name)


def home(path: str) -> str:
    """The directory in which a file is."""
    return path.rpartition("/")[0]
