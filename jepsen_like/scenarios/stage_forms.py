"""Commands and conditions that a quorum and a cluster share: time, processes, links, messages."""

from typing import Protocol

from jepsen_like.scenarios.forms import Forms, Misused
from jepsen_like.scenarios.machines import Machines
from jepsen_like.scenarios.story import Story
from jepsen_like.sim.network import Message
from wire.api_table import APIS, api_of

__all__ = ["AROUND", "CONDITIONS", "FORMS", "Directed", "check_up"]

# What stands around a condition or a command, whatever is played.
AROUND = {
    "deliver until CONDITION": "let time pass until it holds; an error after 5 s",
    "expect CONDITION": "an error if it does not hold",
    "quietly COMMAND": "carry it out, and tell nothing of it",
}
_STOPPING_MS = 2_000
FORMS = Forms()
CONDITIONS = Forms()


class Directed(Protocol):
    """What a scenario acts on."""

    @property
    def story(self) -> Story: ...
    @property
    def machines(self) -> Machines: ...
    def forget(self, node: int) -> None:
        """Its process has ended: what it says next is news."""

    def stop(self, node: int) -> None:
        """Tell the process to end in good order."""

    def wipe(self, node: int) -> None: ...


def check_up(stage: Directed, node: int) -> None:
    if node not in stage.machines.up:
        raise Misused(f"{node} is down")


def _check_down(stage: Directed, node: int) -> None:
    if node in stage.machines.up:
        raise Misused(f"{node} is up")


# --- time -----------------------------------------------------------------------------------


@FORMS.form("run MS ms", "let so much time pass")
def run(stage: Directed, ms: int) -> None:
    stage.machines.run(ms)


@FORMS.form("timers NODES", "the random parts of the nodes' time-outs grow in this order")
def timers(stage: Directed, nodes: list[int]) -> None:
    if sorted(nodes) != sorted(stage.machines.nodes):
        raise Misused(f"name each node once: {', '.join(map(str, stage.machines.nodes))}")
    stage.machines.order_timers(nodes)


@FORMS.form("timers equal", "time-outs have no random part")
def timers_equal(stage: Directed) -> None:
    stage.machines.level_timers()


# --- processes and disks --------------------------------------------------------------------


@FORMS.form("crash NODE", "the process dies; what it has written stays")
def crash(stage: Directed, node: int) -> None:
    check_up(stage, node)
    stage.machines.crash(node, power_loss=False)
    stage.forget(node)


@FORMS.form("crash NODE losing unsynced", "the machine loses power, and the disk what is unsynced")
def crash_losing_unsynced(stage: Directed, node: int) -> None:
    check_up(stage, node)
    stage.machines.crash(node, power_loss=True)
    stage.forget(node)


@FORMS.form("restart NODE", "start a process on what the disk holds")
def restart(stage: Directed, node: int) -> None:
    _check_down(stage, node)
    stage.machines.restart(node)


@FORMS.form("stop NODE", "end the process in good order")
def stop(stage: Directed, node: int) -> None:
    check_up(stage, node)
    stage.stop(node)
    stage.machines.reach(lambda: node not in stage.machines.up, _STOPPING_MS)
    stage.forget(node)


@FORMS.form("wipe NODE", "empty the disk of a node that is down")
def wipe(stage: Directed, node: int) -> None:
    _check_down(stage, node)
    stage.wipe(node)


@FORMS.form("pause NODE", "the process does nothing, as in a long garbage collection")
def pause(stage: Directed, node: int) -> None:
    check_up(stage, node)
    stage.machines.pause(node)


@FORMS.form("resume NODE", "the process goes on, and finds what has come in meanwhile")
def resume(stage: Directed, node: int) -> None:
    check_up(stage, node)
    stage.machines.resume(node)


@FORMS.form("sync NODE in MS ms", "how long each sync of the node's disk takes from now on")
def sync(stage: Directed, node: int, ms: int) -> None:
    stage.machines.sync_in(node, ms)


# --- links and messages ---------------------------------------------------------------------


@FORMS.form("isolate NODES", "cut the links between these nodes and all others")
def isolate(stage: Directed, nodes: list[int]) -> None:
    stage.machines.cut(nodes, [node for node in stage.machines.nodes if node not in nodes])


@FORMS.form("cut SOURCES from TARGETS", "cut the links between the ones and the others")
def cut(stage: Directed, sources: list[int], targets: list[int]) -> None:
    stage.machines.cut(sources, targets)


@FORMS.form("heal", "all links are whole again")
def heal(stage: Directed) -> None:
    stage.machines.heal()


@FORMS.form("hold API from SOURCES to TARGETS", "keep requests on their way, until `release`")
def hold(stage: Directed, api: str, sources: list[int], targets: list[int]) -> None:
    _hold(stage, api, sources, targets, is_request=True)


@FORMS.form("hold API answers from SOURCES to TARGETS", "keep answers on their way")
def hold_answers(stage: Directed, api: str, sources: list[int], targets: list[int]) -> None:
    _hold(stage, api, sources, targets, is_request=False)


def _hold(
    stage: Directed, api: str, sources: list[int], targets: list[int], *, is_request: bool
) -> None:
    known = sorted(each.name for each in APIS)
    if api not in known:
        raise Misused(f"there is no request `{api}`; fetch, vote, alter_partition, … are some")

    def matches(message: Message) -> bool:
        return (
            message.source in sources
            and message.target in targets
            and message.is_request == is_request
            and type(message.body).__module__.startswith("wire.messages.")
            and api_of(type(message.body)).name == api
        )

    stage.machines.hold(matches)


@FORMS.form("release", "what was held arrives now, and nothing is held any more")
def release(stage: Directed) -> None:
    stage.story.tell(f"{_held(stage)} on the way again")
    stage.machines.release()


@FORMS.form("lose", "what was held never arrives, and nothing is held any more")
def lose(stage: Directed) -> None:
    stage.story.tell(f"{_held(stage)} lost")
    stage.machines.lose()


def _held(stage: Directed) -> str:
    count = stage.machines.held
    return "1 held message is" if count == 1 else f"{count} held messages are"


# --- conditions -----------------------------------------------------------------------------


@CONDITIONS.form("NODE is down", "the process of the node has ended")
def is_down(stage: Directed, node: int) -> bool:
    return node not in stage.machines.up
