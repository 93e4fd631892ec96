"""The headline says what the verdict carries; and a picture has it, whatever the history says."""

from collections.abc import Mapping

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Finding, Verdict
from jepsen_like.histories.history import Kind, Value
from jepsen_like.planted.every_bug import in_words
from jepsen_like.report.bands import Band
from jepsen_like.report.document import Told
from jepsen_like.report.headline import again, headline, told_of_plants
from jepsen_like.report.page import page
from jepsen_like.report.picture import picture
from jepsen_like.sim.chaos.plan import Plan
from jepsen_like.sim.chaos.workload_run import run_plan
from tests.jepsen_like.report.drawn import texts_of, too_wide
from tests.jepsen_like.report.recorded import Recorded, data_in
from tests.jepsen_like.report.test_page import HOSTILE, lossy

READ = {"sends": 9, "readings to the end": 6}
SENDS = {"send": 3426, "poll": 900}


def found(*rules: str, counts: Mapping[str, Value] = READ) -> Verdict:
    findings = [Finding(rule=rule, object="a-0", detail="", ops=()) for rule in rules]
    return Verdict.of(findings, counts, objects=["a-0"])


def faults(*bits: bool | None) -> list[Band]:
    return [Band(begin=0, end=1, kind="kill", bit=bit) for bit in bits]


@pytest.mark.parametrize(
    ("workload", "verdict", "bands", "line"),
    [
        ("log", found(), faults(*[True] * 9),
         "3,426 sends acknowledged, none lost, under 9 proven faults"),
        ("log", found(), faults(True), "3,426 sends acknowledged, none lost, under 1 proven fault"),
        ("log", found(counts={"sends": 9, "readings to the end": 0}), [],
         "3,426 sends acknowledged, none seen to be lost, without a fault"),
        ("log", found(), faults(True, False, None),
         "3,426 sends acknowledged, none lost, under 1 proven fault (2 more were not proven)"),
        ("log", found(), faults(None, None),
         "3,426 sends acknowledged, none lost, under 2 faults, none proven"),
        ("log", found("lost-write", "lost-write"), faults(True),
         "3,426 sends acknowledged, lost-write (2 findings), under 1 proven fault"),
        ("log", found("unseen", "duplicate"), faults(True),
         "3,426 sends acknowledged, unseen (1 finding), duplicate (1 finding), "
         "under 1 proven fault"),
        ("log", found("duplicate"), faults(True),
         "3,426 sends acknowledged, none lost, but duplicate (1 finding), under 1 proven fault"),
        ("observe", found(), faults(True), "4,326 operations ok, no rule broken, "
         "under 1 proven fault"),
        ("register", found("not-linearizable"), [],
         "4,326 operations ok, but not-linearizable (1 finding), without a fault"),
        ("log", Verdict.undecided("too long"), faults(True),
         "3,426 sends acknowledged, under 1 proven fault: undecided, which proves nothing"),
        ("set", found(), [], "0 elements added, none lost, without a fault"),
    ],
)  # fmt: skip
def test_headline_says_what_the_verdict_carries(
    workload: str, verdict: Verdict, bands: list[Band], line: str
) -> None:
    assert headline(workload, (verdict, ()), SENDS, bands) == line


def test_void_run_says_so_in_its_headline() -> None:
    line = headline("log", (found(), ["no fault bit"]), SENDS, faults(False))
    assert line.endswith("; but the run is void, and proves nothing")


@pytest.mark.parametrize(
    ("about", "told", "how"),
    [
        ({}, "", ""),
        ({"command": "quorumlab chaos run --seed 1"}, "Nothing was planted", "nothing twice"),
        ({"command": "quorumlab chaos replay --seed 1"}, "Nothing was planted", "The same run"),
        ({"command": "x", "planted": "a bug"}, "Planted: a bug.", "The same faults"),
    ],
)
def test_told_of_plants_and_how_to_make_it_again(
    about: dict[str, str], told: str, how: str
) -> None:
    assert told_of_plants(about).startswith(told)
    assert how in again(about)


def test_a_planted_bug_is_told_with_the_rule_that_it_breaks() -> None:
    told = in_words("takes_repetitions,nobody_knows_this")
    assert told.startswith("takes_repetitions, which breaks the rule that what an idempotent")
    assert told.endswith("; nobody_knows_this")


def test_page_and_picture_of_a_simulated_run_have_its_headline() -> None:
    outcome = run_plan(Plan(seed=1, workload="log", seconds=3, faults=("kill",)))
    about = {"command": "quorumlab chaos replay --seed 1"}
    told = Told(verdict=outcome.verdict, void=outcome.void, about=about)
    line = data_in(page(outcome.history, told))["said"]["headline"]
    assert " sends acknowledged, none lost, under " in line
    assert f'<span id="headline">{line}.</span>' in page(outcome.history, told)
    svg = picture(outcome.history, told)
    assert line in " ".join(texts_of(svg))
    assert about["command"] in " ".join(texts_of(svg))
    assert too_wide(svg) == []


def test_picture_shows_what_broke() -> None:
    history = lossy().history
    text = " ".join(texts_of(picture(history, Told(verdict=judge(history)))))
    assert "VIOLATED" in text
    assert "lost-write a-0:" in text
    assert "An acknowledged value is read by nobody" in text


def test_hostile_texts_stay_texts() -> None:
    recorded = Recorded()
    recorded.did(1000, 2000, 0, "send", [["send", HOSTILE, 1]], kind=Kind.FAIL, error=HOSTILE)
    recorded.fault(1000, 1500, kind=HOSTILE * 3)
    finding = Finding(rule=HOSTILE, object=HOSTILE, detail="x" * 900, ops=())
    about = {"command": HOSTILE, "planted": "y" * 900}
    told = Told(verdict=Verdict.of([finding], objects=[HOSTILE]), void=[HOSTILE], about=about)
    svg = picture(recorded.history, told)
    assert "<script" not in svg
    assert too_wide(svg) == []


def test_history_without_anything_has_a_picture() -> None:
    recorded = Recorded()
    assert "0 sends acknowledged" in picture(recorded.history, Told(verdict=found()))
