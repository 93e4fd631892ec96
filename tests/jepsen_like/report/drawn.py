"""What a picture draws, read back from its SVG."""

import xml.etree.ElementTree as ElementTree

from jepsen_like.report.svg import width_of

__all__ = ["texts_of", "too_wide"]

_TEXT = "{http://www.w3.org/2000/svg}text"


def texts_of(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter(_TEXT)]


def too_wide(svg: str) -> list[str]:
    """Texts that leave the picture."""
    root = ElementTree.fromstring(svg)
    whole = float(root.attrib["width"])
    return [
        each.text or ""
        for each in root.iter(_TEXT)
        if _begin(each) < 0 or _begin(each) + _width(each) > whole
    ]


def _begin(text: ElementTree.Element) -> float:
    x = float(text.attrib["x"])
    return x - _width(text) if text.attrib.get("text-anchor") == "end" else x


def _width(text: ElementTree.Element) -> float:
    is_bold = "font-weight" in text.attrib
    return width_of(text.text or "", float(text.attrib["font-size"]), is_bold=is_bold)
