"""Builds the parts of a plan: the stage, the workload and its clients."""

from collections.abc import Mapping
from dataclasses import dataclass

from jepsen_like.clients.admin_client import AdminClient, RegisterClient
from jepsen_like.clients.log_client import LogClient
from jepsen_like.clients.steps import Clock, Steps
from jepsen_like.sim.chaos.ensemble_stage import EnsembleStage
from jepsen_like.sim.chaos.plan import Plan
from jepsen_like.sim.chaos.register_quorum import RegisterQuorum
from jepsen_like.sim.chaos.workload_core import OpenClient, PerformsSteps
from jepsen_like.sim.chaos.workload_stages import ClusterStage, Stage, Timing
from jepsen_like.sim.world.client_releases import ClientRelease, draw_release, spoken
from jepsen_like.workloads.registry import WORKLOADS
from jepsen_like.workloads.workload import Done, Wish, Workload, WorkloadOptions

__all__ = ["client_opener", "stage_of", "workload_of"]

_QUORUM_WORKLOADS = ("cas-register",)
# The chance that a process has older software: in most runs none has.
_OLDER_SHARES = (0.0, 0.0, 0.0, 0.5)
_LOG_CLIENTS: Mapping[str, type[LogClient]] = {
    **dict.fromkeys(("log", "admin", "observe"), LogClient),
    "kafka": LogClient,
}


def stage_of(plan: Plan) -> Stage:
    timing = Timing(unit_ms=plan.unit_ms, sync_us=plan.sync_us)
    design = plan.zookeeper_design
    if design is not None:
        return EnsembleStage(
            plan.seed,
            design=design,
            brokers=plan.brokers,
            zookeepers=plan.zookeepers,
            timing=timing,
            is_judged=plan.judges_invariants,
        )
    if plan.workload in _QUORUM_WORKLOADS:
        return RegisterQuorum(plan.seed, controllers=plan.controllers, timing=timing)
    return ClusterStage(
        plan.seed,
        controllers=plan.controllers,
        brokers=plan.brokers,
        timing=timing,
        is_judged=plan.judges_invariants,
    )


def workload_of(plan: Plan, stage: Stage) -> Workload:
    options = WorkloadOptions(
        seed=plan.seed,
        brokers=stage.brokers,
        controllers=(),  # topics are listed at brokers only: controllers do not speak Metadata
        processes=plan.processes,
        partitions=plan.partitions,
        pause_ms=plan.pause_ms,
        idempotent=plan.idempotent,
        stale_reads_as_reads=plan.stale_reads_as_reads,
    )
    return WORKLOADS[plan.workload](options)


@dataclass(frozen=True, slots=True)
class _Released:
    """A client of a workload, on software of some release."""

    client: LogClient
    release: ClientRelease

    def perform(self, wish: Wish) -> Steps[Done]:
        return spoken(self.client.perform(wish), self.release)


def client_opener(plan: Plan, stage: Stage) -> OpenClient:
    share = stage.world.fork("releases of clients").choice(_OLDER_SHARES)

    def open_client(process: int, clock: Clock) -> PerformsSteps:
        random = stage.world.fork(f"process/{process}")
        if plan.workload in _QUORUM_WORKLOADS:
            return RegisterClient(stage.controllers, random=random, timeout_ms=plan.timeout_ms)
        log_client = _LOG_CLIENTS.get(plan.workload)
        if log_client is not None:
            client = log_client(
                stage.brokers,
                clock=clock,
                random=random,
                timeout_ms=plan.timeout_ms,
                is_idempotent=plan.idempotent,
            )
            return _Released(client, draw_release(stage.world.fork(f"release/{process}"), share))
        return AdminClient(
            stage.brokers, stage.controllers, random=random, timeout_ms=plan.timeout_ms
        )

    return open_client
