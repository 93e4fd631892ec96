"""The page: what it shows is what the history says, and nothing in a history becomes markup."""

import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Verdict
from jepsen_like.histories.history import Header, History, Kind, Value
from jepsen_like.report.document import Document, Told
from jepsen_like.report.page import page
from tests.jepsen_like.report.recorded import Recorded, data_in

MS = 1000  # microseconds
HOSTILE = '</script><script>alert("x")</script><!-- & \u2028 \ud800 {{script}} </style>'


def lossy() -> Recorded:
    """Value 1 is acknowledged, and lost."""
    recorded = Recorded()
    recorded.send(1000, 1200, 0, 1, 0)
    recorded.send(1300, 1400, 0, 2, 1)
    recorded.fault(1100, 2000)
    recorded.did(
        1500, 1800, 1, "send", [["send", "a-0", 3]], kind=Kind.INFO, error="no answer in 3 s"
    )
    recorded.did(2100, 2200, 2, "send", [["send", "a-0", 4]], kind=Kind.FAIL, error="NOT_LEADER")
    recorded.read_all(3000, 3100, 3, [1, 2])
    return recorded


def shown(history: History, **others: Value) -> Document:
    return data_in(page(history, Told(verdict=judge(history)), **others))


def test_operations_of_the_history_are_those_of_the_page() -> None:
    told = shown(lossy().history)
    bars = told["operations"]
    assert bars["call"] == [each * MS for each in (1000, 1300, 1500, 2100, 3000, 3000)]
    assert bars["ret"] == [each * MS for each in (1200, 1400, 1800, 2200, 3000, 3100)]
    assert bars["outcome"] == [0, 0, 1, 2, 0, 0]
    assert [told["functions"][each] for each in bars["function"]][-2:] == ["assign", "poll"]
    assert [told["lanes"][each] for each in bars["lane"]] == ["0", "0", "1, 2", "1, 2", "3", "3"]
    assert bars["text"][2] == "a-0 3 -> info no answer in 3 s"
    assert told["whole"] == [[0, 3100 * MS]]


def test_verdict_and_witness_are_on_the_page() -> None:
    told = shown(lossy().history)
    finding = told["findings"][0]
    assert (told["verdict"]["outcome"], finding["rule"]) == ("violated", "lost-write")
    first, second = finding["operations"]
    assert told["operations"]["text"][first].startswith("a-0 1 -> ok a-0 0=1")
    assert finding["edges"] == [[first, second, "before"], [second, first, "broken"]]
    assert told["operations"]["whole"][str(first)] == [
        "0  invoke  send  [['send', 'a-0', 1]]",
        "2  ok  send  [['send', 'a-0', [0, 1]]]",
    ]


def test_faults_and_recovery_are_on_the_page() -> None:
    (fault,) = shown(lossy().history)["faults"]
    assert (fault["begin"], fault["end"], fault["kind"]) == (1100 * MS, 2000 * MS, "kill")
    assert (fault["bit"], fault["evidence"]) == (True, "node 1 died")
    assert fault["first_ok"] == 1000 * MS, "the assignment at 3000 ms"


def test_unseen_ends_with_what_was_lost() -> None:
    told = shown(lossy().history)["unseen"]
    assert told["counts"][-1] == 1
    assert max(told["counts"]) == 2


def test_hostile_values_stay_values() -> None:
    recorded = Recorded()
    recorded.did(1000, 2000, 0, HOSTILE, [["send", HOSTILE, 1]], kind=Kind.FAIL, error=HOSTILE)
    recorded.nemesis(3000, "phase", HOSTILE)
    history = recorded.history
    html = page(history, Told(verdict=Verdict.undecided(HOSTILE), void=[HOSTILE]))
    assert html.isascii()
    tags = _Tags()
    tags.feed(html)
    assert tags.scripts == 2, "the data, and the page's own script"
    told = data_in(html)
    assert told["functions"] == [HOSTILE]
    assert told["verdict"]["reason"] == HOSTILE
    assert told["marks"] == [[3000 * MS, HOSTILE]]


def test_hostile_name_stays_a_title() -> None:
    history = History(header=Header(workload="</title><b>", seed=1), ops=[])
    html = page(history, Told(verdict=judge(history)))
    assert "<title>undecided: &lt;/title&gt;&lt;b&gt;, seed 1</title>" in html


@pytest.mark.parametrize("value", [b"\xff", float("nan"), {1: {2}}, "\ud800"])
def test_values_that_json_does_not_know_are_shown(value: Value) -> None:
    recorded = Recorded(workload="observe")
    recorded.did(1000, 2000, 0, "get", value, value, seen=value)
    header = Header(workload="observe", seed=0, options={"odd": value})
    history = History(header=header, ops=recorded.history.ops)
    assert shown(history)["total"] == 1


def test_page_asks_for_nothing() -> None:
    html = page(lossy().history, Told(verdict=Verdict.undecided("not judged")))
    assert "default-src 'none'" in html
    assert not re.search(r"(src|href)=|@import|url\(|https?:|fetch\(|XMLHttp", html)


def test_scripts_write_text_only() -> None:
    package = files("jepsen_like.report")
    scripts = [each.read_text() for each in package.iterdir() if each.name.endswith(".js")]
    assert len(scripts) == 4
    assert not any("innerHTML" in script or "eval(" in script for script in scripts)


def test_history_without_anything_has_a_page() -> None:
    history = History(header=Header(workload="log", seed=0), ops=[])
    told = shown(history)
    assert (told["total"], told["end"], told["findings"]) == (0, 0, [])


def test_history_without_times_counts_lines() -> None:
    recorded = Recorded(workload="register")
    recorded.did(0, 0, 0, "write", ["x", 1])
    recorded.did(0, 0, 0, "read", ["x", None], ["x", 1])
    told = shown(recorded.history)
    assert told["is_time"] is False
    assert told["operations"]["call"] == [0, 2 * MS]


def test_operation_that_never_ended_has_no_return() -> None:
    recorded = Recorded(workload="register")
    recorded.did(1000, 2000, 0, "write", ["x", 1])
    recorded.begun(1500, 1, "write", ["x", 2])
    assert shown(recorded.history)["operations"]["ret"] == [2000 * MS, -1]


def test_evidence_that_is_no_operation_is_drawn_too() -> None:
    recorded = Recorded(workload="observe")
    recorded.observed(1000, 1, {"a-0": [1, 5, 1, [1, 2]]})
    recorded.observed(2000, 2, {"a-0": [2, 5, 1, [1, 2]]})
    recorded.observed(3000, 3, {"a-0": [2, 5, 1, [1, 2]]})
    told = shown(recorded.history)
    assert [told["lanes"][each] for each in told["operations"]["lane"]] == ["node-1", "node-2"]
    assert told["findings"][0]["edges"][-1] == [0, 1, "against"]


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.scripts += tag == "script"
