"""R-RI: what a sure leader answers holds all that was committed anywhere when it was asked.

A leader is paused, and the others elect another and commit. It wakes and finds fetches from before
that in its sockets, which let it believe that it is heard; then it is asked. Clients see it, too:
the answer says that there is less than they have been told.
"""

from typing import Any

import pytest

from jepsen_like.checkers.judges import judge
from jepsen_like.histories.history import Header, History
from jepsen_like.planted.every_bug import BUGS, planted
from jepsen_like.scenarios.quorum.directed_quorum import DirectedQuorum
from jepsen_like.scenarios.stage.story import Production
from jepsen_like.sim.violation import Violation
from tests.sim.watching import looking

each_seed = pytest.mark.parametrize("seed", range(3))


def asks_a_leader_that_was_replaced_in_its_sleep(production: Production) -> int:
    """How many reads were answered: one before its sleep."""
    scenario = DirectedQuorum(production, voters=3)
    leader = scenario.leader()
    scenario.commits()
    reader = scenario.quorum.nodes[leader].application.reader
    host = scenario.host(leader)
    host.command(reader.ask)  # so that there has been a round
    scenario.run(50)
    assert reader.reads == 1
    host.pause()
    scenario.run(120)  # until fetches have been sent again
    scenario.cut([leader])
    scenario.first_leader(node for node in scenario.nodes if node != leader)
    scenario.commits()
    woken: list[int] = []

    def ask_between_two_fetches(asked: Any, _effects: Any) -> None:
        if asked is host and not woken:
            woken.append(host.now_ms)
            reader.ask(host.now_ms)

    scenario.quorum.world.observe(looking(settled=ask_between_two_fetches))
    host.resume()
    scenario.run(5)
    assert woken
    scenario.heal()
    scenario.run(500)
    scenario.converges()
    return reader.reads


@each_seed
def test_who_was_replaced_answers_nothing(seed: int) -> None:
    production = Production(seed=seed)
    assert asks_a_leader_that_was_replaced_in_its_sleep(production) == 1
    assert not _seen_by_clients(production)


@pytest.mark.parametrize("name", BUGS["read"])
@each_seed
def test_planted_bug_is_found(name: str, seed: int) -> None:
    with planted(name), pytest.raises(Violation, match="R-RI"):
        asks_a_leader_that_was_replaced_in_its_sleep(Production(seed=seed))


@pytest.mark.parametrize("name", BUGS["read"])
@each_seed
def test_clients_see_it(name: str, seed: int) -> None:
    production = Production(seed=seed, is_judged=False)
    with planted(name):
        asks_a_leader_that_was_replaced_in_its_sleep(production)
    assert "not-linearizable" in _seen_by_clients(production)


def _seen_by_clients(production: Production) -> set[str]:
    production.end()
    header = Header(workload="log", seed=0, design="quorum")
    verdict = judge(History(header=header, ops=tuple(production.ops)))
    return {finding.rule for finding in verdict.findings}
