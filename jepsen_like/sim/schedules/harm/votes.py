"""Two leaders, or one that should not be: what clients lose by broken rules of elections.

Source: Raft thesis 3.4 and 3.6; KIP-595.
"""

from jepsen_like.sim.schedules.harm.steps import commits_unheard, others
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.scenario import Scenario
from jepsen_like.sim.schedules.schedule_list import Schedules, schedule

__all__ = ["VOTES"]

VOTES: Schedules = {}


@schedule(VOTES, finds=("compares_offsets_first",))
def longer_log_of_an_earlier_epoch(production: Production) -> None:
    """A leader is cut off and goes on writing; the others elect another, which commits a little and
    dies. The first one's log is the longest, and must not win."""
    scenario = Scenario(production, voters=3)
    first = scenario.leader()
    scenario.commits()
    scenario.cut([first])
    for _ in range(50):
        scenario.propose_if_leading(first)
    second = scenario.leader(others(scenario, first))
    (third,) = others(scenario, first, second)
    commits_unheard(scenario, second, by=[third])
    scenario.kill(second)
    scenario.heal()
    scenario.leader([first, third])
    scenario.finish()
