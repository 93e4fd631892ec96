"""All schedules of harm, by name."""

from jepsen_like.sim.schedules.harm.votes import VOTES
from jepsen_like.sim.schedules.schedule_list import Schedules

__all__ = ["HARM"]

HARM: Schedules = {**VOTES}
