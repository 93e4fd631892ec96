"""Pictures: no text is wider than its place, whatever it says, and nothing becomes markup."""

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jepsen_like.report.svg import Drawing, lines_of, shortened, width_of
from tests.jepsen_like.report.drawn import too_wide

HOSTILE = "</text><script>alert('x')</script> & \u2028 \ud800 \x00 ]]> {{title}}"
TEXTS = ("", "a", "W" * 300, "short words that go on " * 20, "長い" * 90, "a-" * 200, HOSTILE)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("width", [30.0, 400.0])
def test_lines_fit_and_lose_no_letter(text: str, width: float) -> None:
    lines = lines_of(text, width, 16, is_bold=True)
    assert all(width_of(line, 16, is_bold=True) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == "".join(text.split())


@given(st.text(max_size=80), st.floats(60, 600))
def test_what_is_shortened_fits(text: str, width: float) -> None:
    short = shortened(text, width, 13)
    assert width_of(short, 13) <= width
    assert short == " ".join(text.split()) or short.endswith("...")


def test_widths_are_those_of_dejavu_or_more() -> None:
    """Measured by a browser, of size 100."""
    known = {"quorum needs 199 ms": 1128, "WWW mmm": 621, "illicit": 234, "ZOOKEEPER": 611}
    for text, width in known.items():
        assert width <= width_of(text, 100) <= 1.5 * width, text


@pytest.mark.parametrize("text", TEXTS)
def test_a_drawing_is_xml_and_holds_its_texts(text: str) -> None:
    drawing = Drawing(640)
    drawing.paragraph(text, 20, is_bold=True)
    drawing.key([(text[:20], ""), (text[:20], "good")] * 5)
    drawing.rule()
    svg = drawing.svg(text)
    root = ElementTree.fromstring(svg)
    assert {each.tag.rpartition("}")[2] for each in root.iter()} <= {
        "svg", "title", "rect", "text", "path"
    }  # fmt: skip
    assert too_wide(svg) == []
    assert not any(word in svg for word in ("foreignObject", "href", "url(", "<script"))
