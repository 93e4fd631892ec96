"""The document as one HTML page that needs nothing else: no network, no library, no server.

What the history says reaches the page as JSON in a script element that no browser runs, and the
page as text nodes. The policy of the page allows its own script and style, by their digests, and
nothing else at all.
"""

import json
from html import escape

from jepsen_like.histories.history import History
from jepsen_like.report.bars import DRAWN
from jepsen_like.report.document import Document, Told, document
from jepsen_like.report.parts import digest, filled, part

__all__ = ["is_page", "page"]

_SCRIPTS = ("view.js", "timeline.js", "plots.js", "page.js")


def page(history: History, told: Told, *, limit: int = DRAWN) -> str:
    """`limit`: operations that are drawn one by one, about."""
    return _joined(document(history, told, limit=limit))


def is_page(html: str) -> bool:
    """Whether what begins like this is one of ours."""
    return '<h1><span id="outcome">' in html


def _joined(shown: Document) -> str:
    outcome, workload = shown["said"]["outcome"], shown["header"]["workload"]
    style, script = (
        part(__package__, "page.css"),
        "\n".join(part(__package__, name) for name in _SCRIPTS),
    )
    slots = {
        "policy": f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}",
        "title": escape(f"{outcome}: {workload}, seed {shown['header']['seed']}"),
        "subject": escape(f"{workload}, seed {shown['header']['seed']}"),
        **{name: escape(text) for name, text in shown["said"].items()},
        "command": escape(shown["about"].get("command", "")),
        "style": style,
        "script": script,
        "data": _inert(shown),
    }
    return filled(__package__, slots)


def _inert(shown: Document) -> str:
    """JSON that no parser of HTML takes for markup: without `<`, `>` and `&`."""
    text = json.dumps(shown, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
