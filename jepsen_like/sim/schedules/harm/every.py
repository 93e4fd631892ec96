"""All schedules of harm, by name."""

from jepsen_like.sim.schedules.data_plane import SCHEDULES
from jepsen_like.sim.schedules.harm.brokers import BROKERS
from jepsen_like.sim.schedules.harm.logs import LOGS
from jepsen_like.sim.schedules.harm.snapshots import SNAPSHOTS
from jepsen_like.sim.schedules.harm.voters import VOTERS
from jepsen_like.sim.schedules.harm.votes import VOTES
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
