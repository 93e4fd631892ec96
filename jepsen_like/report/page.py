"""The document as one HTML page that needs nothing else: no network, no library, no server.

What the history says reaches the page as JSON in a script element that no browser runs, and the
page as text nodes. The policy of the page allows its own script and style, by their digests, and
nothing else at all.
"""

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

from jepsen_like.histories.history import History
from jepsen_like.report.bars import DRAWN
from jepsen_like.report.document import Document, Told, document

__all__ = ["digest", "filled", "is_page", "page", "part"]

_SCRIPTS = ("view.js", "timeline.js", "plots.js", "page.js")
_SLOT = re.compile(r"\{\{(\w+)\}\}")


def page(history: History, told: Told, *, limit: int = DRAWN) -> str:
    """`limit`: operations that are drawn one by one, about."""
    return _joined(document(history, told, limit=limit))


def is_page(html: str) -> bool:
    """Whether what begins like this is one of ours."""
    return '<h1><span id="outcome">' in html


def _joined(shown: Document) -> str:
    outcome, workload = shown["verdict"]["outcome"], shown["header"]["workload"]
    style, script = (
        part(__package__, "page.css"),
        "\n".join(part(__package__, name) for name in _SCRIPTS),
    )
    slots = {
        "policy": f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}",
        "title": escape(f"{outcome}: {workload}, seed {shown['header']['seed']}"),
        "style": style,
        "script": script,
        "data": _inert(shown),
    }
    return filled(__package__, slots)


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


def _inert(shown: Document) -> str:
    """JSON that no parser of HTML takes for markup: without `<`, `>` and `&`."""
    text = json.dumps(shown, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
