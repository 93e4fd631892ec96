"""The page: everything measured is on it, nothing becomes markup, and nothing is fetched."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from quorumlab.compare.experiments import EXPERIMENTS
from quorumlab.compare.page import page
from quorumlab.compare.results import Results
from tests.quorumlab.compare.compared import compared
from tests.quorumlab.compare.test_answers import ONCE, THRICE
from tests.quorumlab.compare.test_results import measured

HOSTILE = "</style><script>alert('x')</script> & \u2028"


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert "style" not in dict(attrs), "the page's policy forbids it"
        if tag not in ("meta", "rect", "path", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("rect", "path", "circle"):
            assert self.open.pop() == tag, tag


def tags(html: str) -> list[str]:
    parser = _Tags()
    parser.feed(html)
    assert parser.open == []
    return parser.seen


def test_every_experiment_is_a_section_and_every_element_is_closed(tmp_path: Path) -> None:
    html = page(compared(tmp_path, (10, 100)))
    assert tags(html).count("section") == len(EXPERIMENTS)
    assert "quorum/raftos" in html
    assert "replicas elect" in html


def test_slides_of_real_results_have_answers_as_titles_and_the_quorum_first() -> None:
    html = page(ONCE)
    assert re.findall(r'<h2 id="(\S+)-answer">(A [^ ]+ [^ ]+)', html) == [
        ("broker-crash", "A crash costs"),
        ("controller-failover", "A controller&#x27;s death"),
    ]
    for bars in html.split('<div class="bars')[1:]:
        assert re.findall(r'class="subject">(.*?)<', bars)[0] == "quorum"
    assert html.count('class="warning"') == 3, "on both slides, and on the last"
    assert "<title>A crash costs the time-out of 2 s; then quorum needs " in html
    assert html.index('<section id="broker-crash"') < html.index('id="measured"')


def test_settings_and_designs_are_told_apart() -> None:
    html = page(ONCE)
    assert html.count('<rect class="wait"') > 20
    assert "1,842 ms setting + <b>775 ms design</b>" in html
    assert 'class="detected"' not in html


def test_runs_are_drawn_with_their_spread() -> None:
    assert page(ONCE).count('class="spread"') == 0
    html = page(THRICE)
    assert html.count('class="spread"') == 6, "of three designs, on the slide and below it"
    assert html.count("(3 runs: ") == 6
    assert "zk-v3 <small>run 2</small>" in html, "what clients saw is told of every run"


def test_page_fetches_nothing_and_runs_nothing(tmp_path: Path) -> None:
    html = page(compared(tmp_path, (10, 100)))
    assert "script" not in tags(html)
    assert not re.search(r"(src|href)=\"(?!#)", html)
    assert "default-src 'none'" in html


def test_what_a_result_says_becomes_no_markup(tmp_path: Path) -> None:
    cells = [
        measured(errors={HOSTILE: 1}, ledger={"brokers": {HOSTILE: 1}}),
        replace(measured("zk-v1"), outcome="failed", why=HOSTILE),
    ]
    results = Results(tmp_path / "results.json", {"commit": HOSTILE}, 1)
    results.cells = {cell.key: cell for cell in cells}
    html = page(results)
    assert "script" not in tags(html)
    assert html.isascii()


def test_one_size_has_no_growth(tmp_path: Path) -> None:
    assert "Growth" not in page(compared(tmp_path, (100,)))


def test_nothing_measured_is_a_page_too(tmp_path: Path) -> None:
    assert "section" not in tags(page(Results(tmp_path / "results.json", {}, 1)))


def test_where_brokers_hold_no_data_no_client_saw_anything(tmp_path: Path) -> None:
    told = page(compared(tmp_path, (100, 20_000))).split("20,000 partitions <small>")[1]
    assert "no client writes" in told.split("<h3>")[0]
