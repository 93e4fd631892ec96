"""Which faults a run has and when, and whether what came of them proves anything."""

from collections.abc import Sequence
from dataclasses import replace

from jepsen_like.faults.fault import Role, Scheduled
from jepsen_like.faults.fault_schedule import draw_schedule, without_controller
from jepsen_like.faults.kinds import kind_and_role
from jepsen_like.faults.validity import Figures, strikes, why_void
from jepsen_like.histories.history import Op
from jepsen_like.real.runs.outcome import Ran
from jepsen_like.real.runs.run_options import RunOptions
from wire.zk.designs import DESIGNS, ZK_KIP497

__all__ = ["KINDS_WITHOUT_PROCESSES", "kinds_of", "reasons_to_be_void", "schedule_of"]


# A proxy between clients and brokers can do these.
KINDS_WITHOUT_PROCESSES = ("partition", "partition-one-way", "delay", "reset", "slow-close")


def kinds_of(options: RunOptions) -> Sequence[str]:
    """Without the roles that may be wanted: `kill` of `kill:majority`."""
    return list(dict.fromkeys(kind_and_role(wanted)[0] for wanted in options.faults))


def schedule_of(options: RunOptions) -> Sequence[Scheduled]:
    drawn = draw_schedule(
        seed=options.seed,
        kinds=options.faults,
        seconds=options.seconds,
        # In a quorum alone, voters stand in for brokers; with ZooKeeper, brokers for voters.
        combined=not options.brokers or options.has_zookeeper,
    )
    if not DESIGNS.get(options.design, ZK_KIP497).has_controller:
        drawn = without_controller(drawn)
    return [_between_clients_and_a_broker(each) for each in drawn] if options.servers else drawn


def _between_clients_and_a_broker(scheduled: Scheduled) -> Scheduled:
    """All that can be done to a cluster that somebody else runs."""
    fault = scheduled.fault
    ours = replace(fault, role=Role.ONE_BROKER, parameters={**fault.parameters, "clients": True})
    return replace(scheduled, fault=ours)


def reasons_to_be_void(options: RunOptions, ran: Ran, ops: Sequence[Op]) -> tuple[str, ...]:
    return why_void(
        Figures(
            seconds=options.seconds,
            kinds=kinds_of(options),
            strikes=strikes(ran.fault_outcomes, ops),
            ok_a_second=ran.safety.ok_a_second,
            ok_a_second_without_faults=ran.warm_up.ok_a_second,
            controller_elections=ran.controller_elections,
        )
    )
