"""The shipped rules on a few seeds, and what a run must be: reproducible, and not void.

`make sim` runs thousands. A failing seed prints the command that shows it again.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from jepsen_like.sim.assemblies.quorum.quorum_options import FIRING_KINDS, Options, draw_options
from jepsen_like.sim.assemblies.quorum.simulation import Outcome, run
from jepsen_like.sim.runs.command import describe_failure
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.tracing import HEADING, Tracer
from quorum.core.effects import Event

ROOT = Path(__file__).parents[2]
SEEDS = (*range(381, 391), 78, 97)  # which have every kind of fault among them


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return [run(seed) for seed in SEEDS]


def test_shipped_rules_hold_on_every_seed(outcomes: list[Outcome]) -> None:
    failures = [outcome for outcome in outcomes if outcome.kind != "ok"]
    assert not failures, "\n".join(describe_failure(outcome) for outcome in failures)


def test_every_kind_of_fault_fired(outcomes: list[Outcome]) -> None:
    fired = {kind for outcome in outcomes for kind, count in outcome.faults.items() if count}
    assert fired == set(FIRING_KINDS)


def test_runs_elected_and_committed(outcomes: list[Outcome]) -> None:
    assert all(outcome.elections > 0 for outcome in outcomes)
    assert all(outcome.committed > 0 for outcome in outcomes)
    assert sum(outcome.elections for outcome in outcomes) > 3 * len(outcomes)


def test_same_seed_has_the_same_digest_whatever_the_hash_seed(outcomes: list[Outcome]) -> None:
    """Of these seeds some pass messages through codecs and some do not."""
    seeds = SEEDS[2:5]
    assert len({draw_options(VirtualTime(seed).fork("options")).codecs for seed in seeds}) == 2
    script = (
        "from jepsen_like.sim.assemblies.quorum.simulation import run;"
        f"print([(o.digest, o.event) for o in map(run, {tuple(seeds)})])"
    )
    elsewhere = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONHASHSEED": "4711", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    ).stdout
    here = [(outcome.digest, outcome.event) for outcome in outcomes[2:5]]
    assert elsewhere == f"{here}\n"


def test_codecs_ride_along_on_about_half_the_seeds() -> None:
    drawn = [draw_options(VirtualTime(seed).fork("options")).codecs for seed in range(200)]
    assert 70 < sum(drawn) < 130


def test_one_seed_of_five_voters_and_a_virtual_minute() -> None:
    options = Options(
        voters=5,
        codecs=True,
        election_timeout_ms=1000,
        fetch_timeout_ms=2000,
        fetch_max_wait_ms=500,
        election_backoff_max_ms=1000,
        request_timeout_ms=2000,
        propose_interval_ms=500,
        safety_ms=60_000,
        nemesis_ms={"kill": 5000, "power-loss": 8000, "partition": 8000},
        down_ms=2000,
        cut_ms=4000,
    )
    outcome = run(1, options=options)
    assert outcome.kind == "ok", describe_failure(outcome)
    assert outcome.now_ms > 60_000


def test_until_event_cuts_the_run_short_at_that_event() -> None:
    outcome = run(3, until_event=100)
    assert (outcome.kind, outcome.event) == ("cut short", 100)


def test_trace_has_the_documented_columns() -> None:
    lines: list[str] = []
    run(3, until_event=200, tracer=Tracer(lines.append, full=False))
    assert lines[0] == HEADING
    assert all(len(line) > len(HEADING) - len("what") for line in lines)
    assert "leader" in "\n".join(lines)


def test_full_trace_has_every_event_of_every_turn() -> None:
    class Counting(Tracer):
        received_count = 0

        def received(self, host: Host, event: Event) -> None:
            self.received_count += 1
            super().received(host, event)

    lines: list[str] = []
    tracer = Counting(lines.append, full=True)
    run(381, until_event=2000, tracer=tracer)
    place = HEADING.index("what")
    first = [line[place:] for line in lines[1:] if not line[:place].isspace()]
    others = [line for line in lines if line[:place].isspace() and line[place] == "<"]
    assert others
    told = [what for what in first if what not in ("start", "tick")] + others
    assert len(told) == tracer.received_count


def test_tracing_does_not_change_the_run() -> None:
    traced = run(4, until_event=2000, tracer=Tracer(lambda _line: None, full=True))
    assert traced == run(4, until_event=2000)


@pytest.mark.parametrize("column", HEADING.split())
def test_docs_explain_every_column_of_the_trace(column: str) -> None:
    assert f"`{column}`" in (ROOT / "docs" / "testing.md").read_text()
