"""All schedules of harm, by name."""

from jepsen_like.sim.schedules.data_plane import SCHEDULES
from jepsen_like.sim.schedules.harm.broker_harm import BROKERS
from jepsen_like.sim.schedules.harm.log_harm import LOGS
from jepsen_like.sim.schedules.harm.snapshot_harm import SNAPSHOTS
from jepsen_like.sim.schedules.harm.vote_harm import VOTES
from jepsen_like.sim.schedules.harm.voter_harm import VOTERS
from jepsen_like.sim.schedules.schedule_list import Schedules

__all__ = ["HARM"]

HARM: Schedules = {
    **BROKERS,
    **LOGS,
    **SNAPSHOTS,
    **VOTERS,
    **VOTES,
    "leads_again_without_knowing": SCHEDULES["leads_again_without_knowing"],
}
