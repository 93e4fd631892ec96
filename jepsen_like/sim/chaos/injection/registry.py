"""All kinds of faults on a simulated cluster, under the names that they have on real processes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jepsen_like.faults import Fault, Injected, Injector
from jepsen_like.sim.chaos.injection.disks import Disks
from jepsen_like.sim.chaos.injection.messages import MESSAGE_KINDS, Messages
from jepsen_like.sim.chaos.injection.network import Links
from jepsen_like.sim.chaos.injection.processes import Processes
from jepsen_like.sim.chaos.stages import Stage
from jepsen_like.sim.interception import Interception

__all__ = ["injectors"]


@dataclass(frozen=True, slots=True)
class _By:
    """An injector that is a function."""

    inject: Callable[[Fault, Sequence[int]], Injected]

    def why_not(self) -> str:
        return ""


def injectors(stage: Stage, interception: Interception) -> Mapping[str, Injector]:
    processes, disks = Processes(stage), Disks(stage)
    links, messages = Links(stage, interception), Messages(stage, interception)
    return {
        **{kind: _By(inject) for kind, inject in stage.injectors.items()},
        "kill": _By(processes.kill),
        "stop": _By(processes.stop),
        "pause": _By(processes.pause),
        "rolling-restart": _By(processes.restart_all),
        "power-loss": _By(processes.cut_power),
        "torn-write": _By(processes.tear),
        "clock-jump": _By(processes.jump),
        "fsync-error": _By(disks.fail_syncs),
        "slow-disk": _By(disks.slow_down),
        "partition": _By(links.around),
        "isolate-controller": _By(links.around),
        "partition-one-way": _By(links.one_way),
        "partition-ring": _By(links.ring),
        "bridge": _By(links.bridge),
        "delay": _By(links.delay),
        "reset": _By(links.lose),
        # Above TCP, a packet that was lost is a message that comes late.
        "netns-partition": _By(links.around),
        "netns-one-way": _By(links.one_way),
        "netns-loss": _By(links.delay),
        **dict.fromkeys(MESSAGE_KINDS, _By(messages.strike)),
    }
