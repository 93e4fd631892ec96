"""Commands and conditions that a quorum and a cluster share: time, processes, links, messages."""

from collections.abc import Callable, Iterable
from typing import Protocol

from jepsen_like.scenarios.language.forms import Forms, Misused, Names
from jepsen_like.scenarios.stage.held_messages import HeldMessages, Traffic, fetches_of
from jepsen_like.scenarios.stage.steady_streams import SteadyStreams
from jepsen_like.scenarios.stage.story import Story

__all__ = ["AROUND", "CONDITIONS", "FORMS", "Directed", "Machines"]

# What stands around a condition or a command, whatever is played.
AROUND = {
    "deliver until CONDITION": "let time pass until it holds; an error after 5 s",
    "expect CONDITION": "an error if it does not hold",
    "quietly COMMAND": "carry it out, and tell nothing of it",
}
_STOPPING_MS = 2_000
FORMS = Forms()
CONDITIONS = Forms()


class Machines(Protocol):
    """Nodes, links and messages, simulated or of processes. What is not there raises Misused."""

    @property
    def nodes(self) -> list[int]: ...
    @property
    def up(self) -> list[int]: ...
    @property
    def messages(self) -> HeldMessages: ...
    def run(self, ms: int) -> None:
        """Let so much time pass."""

    def reach(self, condition: Callable[[], bool], within_ms: int) -> bool: ...
    def crash(self, node: int, *, power_loss: bool = ...) -> None:
        """The process dies; what it has written stays."""

    def restart(self, node: int) -> None:
        """Start a process on what the disk holds."""

    def forget(self, node: int) -> None:
        """Its process has ended: what it says next is news."""

    def pause(self, node: int) -> None:
        """The process does nothing, as in a long garbage collection."""

    def resume(self, node: int) -> None:
        """The process goes on, and finds what has come in meanwhile."""

    def sync_in(self, node: int, ms: int) -> None:
        """How long each sync of the node's disk takes from now on."""

    def cut(self, side: Iterable[int], others: Iterable[int]) -> None:
        """Cut the links between the ones and the others."""

    def heal(self) -> None:
        """All links are whole again."""

    def hold_api(self, held: Traffic, name: str = ...) -> None: ...
    def hold_fetches(self, follower: int, leader: int) -> None:
        """Keep the fetches of the node and the answers: it gets nothing of that log."""

    def has_held_for(self, name: str, nodes: Iterable[int]) -> bool:
        """Something to each of these nodes is held under this name."""


class Directed(Protocol):
    """What a scenario acts on."""

    @property
    def story(self) -> Story: ...
    @property
    def names(self) -> Names: ...
    @property
    def machines(self) -> Machines: ...
    @property
    def streams(self) -> SteadyStreams | None: ...
    def until(
        self, condition: Callable[[], bool], what: str, *, bound: str = ..., within_ms: int = ...
    ) -> None:
        """Raises Stuck under the name of `bound`."""

    def stop(self, node: int) -> None:
        """Tell the process to end in good order."""

    def wipe(self, node: int) -> None:
        """Empty the disk of a node that is down."""

    def finish(self) -> None:
        """Heal and start everything: it must come to rest with all that was promised."""


def check_up(directed: Directed, node: int) -> None:
    if node not in directed.machines.up:
        raise Misused(f"{node} is down")


def _check_down(directed: Directed, node: int) -> None:
    if node in directed.machines.up:
        raise Misused(f"{node} is up")


FORMS.add("run MS ms", Machines.run, of="machines")
FORMS.add("heal", Machines.heal, of="machines")
FORMS.add("hold fetches of NODE from OTHER", Machines.hold_fetches, of="machines")
FORMS.add("release NAME", HeldMessages.release, of="machines.messages")
FORMS.add("lose NAME", HeldMessages.lose, of="machines.messages")
FORMS.add("cut SOURCES from TARGETS", Machines.cut, of="machines")
FORMS.add("sync NODE in MS ms", Machines.sync_in, of="machines")
FORMS.add("crash NODE", Machines.crash, of="machines", check=check_up)
FORMS.add("pause NODE", Machines.pause, of="machines", check=check_up)
FORMS.add("resume NODE", Machines.resume, of="machines", check=check_up)
FORMS.add("restart NODE", Machines.restart, of="machines", check=_check_down)
FORMS.add("wipe NODE", Directed.wipe, check=_check_down)
FORMS.add("finish", Directed.finish)


# --- time -----------------------------------------------------------------------------------


@FORMS.form("timers NODES", "the random parts of the nodes' time-outs grow in this order")
def timers(directed: Directed, nodes: list[int]) -> None:
    if sorted(nodes) != sorted(directed.machines.nodes):
        raise Misused(f"name each node once: {', '.join(map(str, directed.machines.nodes))}")
    if directed.streams is None:
        raise Misused("the random parts of time-outs are drawn here")
    directed.streams.order_timers(nodes)


# --- processes and disks --------------------------------------------------------------------


@FORMS.form("crash NODE losing unsynced", "the machine loses power, and the disk what is unsynced")
def crash_losing_unsynced(directed: Directed, node: int) -> None:
    check_up(directed, node)
    directed.machines.crash(node, power_loss=True)


@FORMS.form("stop NODE", "end the process in good order")
def stop(directed: Directed, node: int) -> None:
    check_up(directed, node)
    directed.stop(node)
    directed.machines.reach(lambda: node not in directed.machines.up, _STOPPING_MS)
    directed.machines.forget(node)


# --- links and messages ---------------------------------------------------------------------


@FORMS.form("isolate NODES", "cut the links between these nodes and all others")
def isolate(directed: Directed, nodes: list[int]) -> None:
    directed.machines.cut(nodes, [node for node in directed.machines.nodes if node not in nodes])


@FORMS.form("hold API from SOURCES to TARGETS", "keep requests on their way, until `release`")
@FORMS.form("hold API from SOURCES to TARGETS as NAME", "keep requests until `release NAME`")
def hold(
    directed: Directed, api: str, sources: list[int], targets: list[int], name: str = ""
) -> None:
    directed.machines.hold_api(Traffic(api, sources, targets), name)


@FORMS.form("hold API answers from SOURCES to TARGETS", "keep answers on their way")
@FORMS.form("hold API answers from SOURCES to TARGETS as NAME", "keep answers until `release NAME`")
def hold_answers(
    directed: Directed, api: str, sources: list[int], targets: list[int], name: str = ""
) -> None:
    directed.machines.hold_api(Traffic(api, sources, targets, is_request=False), name)


@FORMS.form("hold one API from SOURCES to TARGETS as NAME", "keep the next request on its way")
def hold_one(
    directed: Directed, api: str, sources: list[int], targets: list[int], name: str
) -> None:
    directed.machines.hold_api(Traffic(api, sources, targets, times=1), name)


@FORMS.form("hold one API answer from SOURCES to TARGETS as NAME", "keep the next answer")
def hold_one_answer(
    directed: Directed, api: str, sources: list[int], targets: list[int], name: str
) -> None:
    directed.machines.hold_api(Traffic(api, sources, targets, is_request=False, times=1), name)


@FORMS.form("release fetches of NODE from OTHER", "what was held arrives now")
def release_fetches(directed: Directed, node: int, other: int) -> None:
    directed.machines.messages.release(fetches_of(node, other))


@FORMS.form("lose fetches of NODE from OTHER", "what was held never arrives")
def lose_fetches(directed: Directed, node: int, other: int) -> None:
    directed.machines.messages.lose(fetches_of(node, other))


@FORMS.form("release", "what was held arrives now, and nothing is held any more")
def release(directed: Directed) -> None:
    directed.story.tell(f"{_held(directed)} on the way again")
    directed.machines.messages.release()


@FORMS.form("lose", "what was held never arrives, and nothing is held any more")
def lose(directed: Directed) -> None:
    directed.story.tell(f"{_held(directed)} lost")
    directed.machines.messages.lose()


def _held(directed: Directed) -> str:
    count = directed.machines.messages.count
    return "1 held message is" if count == 1 else f"{count} held messages are"


# --- names ----------------------------------------------------------------------------------


@FORMS.form("NAMES = the others", "the nodes that have no name yet")
def the_others(directed: Directed, names: list[str]) -> None:
    directed.names.name(names, directed.names.unnamed)


@FORMS.form("NAMES = NODES", "the nodes in this order")
def named(directed: Directed, names: list[str], nodes: list[int]) -> None:
    directed.names.name(names, nodes)


# --- conditions -----------------------------------------------------------------------------


@CONDITIONS.form("NODE is down", "the process of the node has ended")
def is_down(directed: Directed, node: int) -> bool:
    return node not in directed.machines.up


CONDITIONS.add("NAME has a message", HeldMessages.has, of="machines.messages")
CONDITIONS.add("NAME has no message", HeldMessages.has_none, of="machines.messages")
CONDITIONS.add("NAME has messages to NODES", Machines.has_held_for, of="machines")
