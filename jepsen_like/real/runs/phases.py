"""The phases of a run, on a cluster that is there.

    warm-up     clients without faults: what they do is the measure of what they do later
    safety      clients with faults, as the schedule says
    liveness    all is healed; within a bound everything must be served again
    final       fresh clients read what is there

Each begins with a line of the nemesis in the history: f "phase", value its name.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from random import Random

from jepsen_like.checkers.verdict import Finding, Verdict
from jepsen_like.faults.fault import Scheduled
from jepsen_like.faults.nemesis import Nemesis, Roles
from jepsen_like.histories.history import Kind, Op
from jepsen_like.real.clients.client_choice import OpenClient
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.runs.environment import Environment
from jepsen_like.real.runs.observers import Observers, Served, missing_in_cluster
from jepsen_like.real.runs.outcome import Interrupted, Measured, Ran, Watcher
from jepsen_like.real.runs.run_options import RunOptions
from jepsen_like.real.runs.worker_threads import NemesisThread, Recording, Workers
from jepsen_like.workloads.workload import Workload, deed
from wire.zk.designs import DESIGNS

__all__ = ["Phases"]

LIVENESS_SECONDS = 45.0  # three times what the time-outs add up to: two cores are busy
FINAL_SECONDS = 90.0
_SAMPLE_SECONDS = 0.2
_OFTEN_SECONDS = 0.05  # where samples are what is judged
_LOOK_SECONDS = 0.25
_NEWS_SECONDS = 1.0  # a broker hears later than who asked another that something was done


class Phases:
    def __init__(
        self,
        options: RunOptions,
        environment: Environment,
        *,
        workload: Workload,
        open_client: OpenClient,
        recording: Recording,
        watcher: Watcher,
    ) -> None:
        self._options = options
        self._environment = environment
        self._target = environment.target
        self._topics = [topic.name for topic in workload.topics]
        self._recording = recording
        self._watcher = watcher
        self._workers = Workers(workload, open_client, recording)
        interval_seconds = _OFTEN_SECONDS if workload.name == "observe" else _SAMPLE_SECONDS
        self._observers = Observers(
            self._target,
            self._topics,
            recording,
            interval_seconds=interval_seconds,
            design=DESIGNS.get(options.design),
        )
        self._served = Served(_keys(workload))
        recording.listeners.append(self._served)
        self._nemesis: Nemesis | None = None
        self._phase = ""

    def run(self, schedule: Sequence[Scheduled]) -> Ran:
        """Raises Interrupted. Whatever happens, all is healed and nobody works when it ends."""
        roles = Roles(
            controllers=sorted(self._target.controllers or self._target.brokers),
            brokers=sorted(self._target.brokers),
            active_controller=lambda: self._observers.controller()[0],
            partition_leaders=self._observers.partition_leaders,
            random=Random(self._options.seed),
            zookeepers=self._environment.zookeepers,
        )
        self._nemesis = Nemesis(
            schedule,
            injectors=self._environment.injectors,
            roles=roles,
            recording=self._recording,
            refusals=(ClusterError,),
        )
        playing = NemesisThread(self._nemesis)
        with ExitStack() as stack:
            stack.callback(self._workers.close)
            stack.callback(self._observers.stop)
            stack.callback(playing.stop)
            stack.callback(self._workers.ask_to_stop)
            return self._run(self._nemesis, playing, schedule)

    def _run(self, nemesis: Nemesis, playing: NemesisThread, schedule: Sequence[Scheduled]) -> Ran:
        self._observers.start()
        self._begin("warm-up")
        self._workers.start()
        warm_up = self._measured(lambda: self._wait(self._options.warm_up_seconds))
        self._begin("safety")
        before = self._observers.elections()
        playing.start()
        safety = self._measured(lambda: self._wait(self._options.seconds))
        playing.stop()
        self._environment.heal()
        after = self._observers.elections()
        findings, recovered_seconds = self._liveness()
        self._workers.stop()
        findings += self._final()
        return Ran(
            verdict=Verdict.of(findings),
            warm_up=warm_up,
            safety=safety,
            schedule=schedule,
            fault_outcomes=tuple(nemesis.fault_outcomes),
            controller_elections=after[0] - before[0],
            leader_elections=after[1] - before[1],
            recovered_seconds=recovered_seconds,
        )

    # --- phases ------------------------------------------------------------------------------

    def _begin(self, phase: str) -> Op:
        self._phase = phase
        return self._recording.enter(deed("phase", phase))

    def _liveness(self) -> tuple[list[Finding], float | None]:
        begun = self._begin("liveness")
        self._served.begin(begun)
        began = time.monotonic()
        while True:
            missing = [*self._served.missing(), *missing_in_cluster(self._target, self._topics)]
            waited = time.monotonic() - began
            if not missing:
                return [], waited
            if waited > LIVENESS_SECONDS:
                break
            self._wait(_LOOK_SECONDS, waiting_for=missing[0])
        detail = f"{LIVENESS_SECONDS:.0f} s after everything was healed: " + "; ".join(missing)
        finding = Finding(
            rule="not-live-again", object="cluster", detail=detail, ops=(begun.index,)
        )
        return [finding], None

    def _final(self) -> list[Finding]:
        """Read everything back, once the last changes have come to all nodes."""
        self._wait(_NEWS_SECONDS)
        begun = self._begin("final")
        self._show("reading back")
        if self._workers.final(FINAL_SECONDS, self._watcher.is_interrupted):
            return []
        if self._watcher.is_interrupted():
            raise Interrupted
        detail = f"not everything could be read within {FINAL_SECONDS:.0f} s on a healed cluster"
        return [Finding(rule="not-readable", object="cluster", detail=detail, ops=(begun.index,))]

    # --- time --------------------------------------------------------------------------------

    def _measured(self, phase: Callable[[], None]) -> Measured:
        counts = self._recording.counts
        before, began = counts.copy(), time.monotonic()
        phase()
        done = counts - before
        return Measured(
            seconds=time.monotonic() - began,
            ok=done[Kind.OK],
            fail=done[Kind.FAIL],
            info=done[Kind.INFO],
        )

    def _wait(self, seconds: float, waiting_for: str = "") -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._watcher.is_interrupted():
                raise Interrupted
            self._workers.check()
            self._show(waiting_for or f"{left:.0f} s left")
            time.sleep(min(left, _LOOK_SECONDS))

    def _show(self, what: str) -> None:
        counts = self._recording.counts
        controller, epoch = self._observers.controller()
        active = self._nemesis.active if self._nemesis is not None else ()
        self._watcher.progress(
            f"{self._phase}: {what} | so far ok {counts[Kind.OK]} fail {counts[Kind.FAIL]} "
            f"info {counts[Kind.INFO]} | controller {controller or '-'} epoch {epoch} | "
            f"faults: {', '.join(active) or 'none'}"
        )


def _keys(workload: Workload) -> Sequence[str]:
    """The keys that must be written and read again: all that the workload reads at the end."""
    keys: dict[str, None] = {}
    for process in range(workload.processes):
        for wish in workload.final(process):
            match wish.f, wish.value:
                case "assign", assigned:
                    keys.update(dict.fromkeys(assigned))
                case "read", [key, _]:
                    keys[key] = None
                case _:
                    pass
    return list(keys)
