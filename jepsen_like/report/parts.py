"""Pages that need nothing else: joined from a package's files, with a policy that names them."""

import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files

__all__ = ["digest", "filled", "part"]

_SLOT = re.compile(r"\{\{(\w+)\}\}")


def filled(package: str, slots: Mapping[str, str]) -> str:
    """The page of a package, in ASCII."""
    html = _SLOT.sub(lambda slot: slots[slot[1]], part(package, "page.html"))
    return html.encode("ascii", "xmlcharrefreplace").decode("ascii")


@cache
def part(package: str, name: str) -> str:
    text = files(package).joinpath(name).read_text(encoding="ascii")
    assert "</script" not in text or name == "page.html", name
    return text


def digest(content: str) -> str:
    """As a policy names a style or a script that it allows."""
    return f"'sha256-{b64encode(sha256(content.encode('ascii')).digest()).decode()}'"
