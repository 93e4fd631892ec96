"""The vocabulary of faults: every kind, once, whoever draws it and whatever it is done to.

Two backends inject faults: real processes (`jepsen_like.real.injection`) and the simulator
(`jepsen_like.sim.faults`). Each has an injector for a kind or a reason why it has none, which a
user is told. What a kind does there is the injector's business. Pure.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from functools import partial
from itertools import combinations

from jepsen_like.faults.fault import Role
from jepsen_like.histories.history import Value

__all__ = ["KINDS", "FaultKind", "Medium", "clash", "kind_and_role"]

_ONE_NODE = (Role.ACTIVE_CONTROLLER, Role.LEADER, Role.ONE_BROKER, Role.ONE_CONTROLLER)
_BROKERS = (Role.LEADER, Role.ONE_BROKER)
_VOTERS = (Role.ACTIVE_CONTROLLER, Role.ONE_CONTROLLER)
_ANY = (Role.ONE_BROKER, Role.ONE_CONTROLLER)
_LONG_MS = (2_500, 5_000)  # longer than the time-outs of a local cluster


class Medium(StrEnum):
    """The medium between a cluster's processes that a kind needs; a cluster has one of the two."""

    ANY = "any"
    PROXIES = "proxies"
    NAMESPACES = "namespaces"


@dataclass(frozen=True, slots=True)
class FaultKind:
    """The roles that a kind may be injected on, the proof that it bit, and how long it lasts.

    A parameter is drawn from its choices. `not_on_processes`, `not_simulated`: why that backend
    has no injector; "" if it has one.
    """

    roles: tuple[Role, ...]
    proof: str  # as docs/chaos.md has it
    lasts_ms: tuple[int, int] = (2_000, 4_000)
    _: KW_ONLY
    takes_away: bool = False  # a node is of no use meanwhile
    ends_leadership: bool = False  # of a controller, if it lasts
    choices: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    medium: Medium = Medium.ANY
    not_on_processes: str = ""
    not_simulated: str = ""


_away = partial(FaultKind, takes_away=True)
_deposes = partial(_away, ends_leadership=True)

_GONE = "that process is gone"
_WAITED = "frames that waited"
_SAYS = "what the node says"
_PROXIES, _NAMESPACES = Medium.PROXIES, Medium.NAMESPACES
_SHORT_MS = (500, 2_000)
_LOGS: Mapping[str, tuple[Value, ...]] = {"log": ("metadata", "partition")}  # of a broker's
_ONE_WAY: Mapping[str, tuple[Value, ...]] = {"direction": ("out", "in")}
_CLIENTS: Mapping[str, tuple[Value, ...]] = {"clients": (False, False, True)}
_APIS: tuple[Value, ...] = (
    ("fetch",),
    ("broker_heartbeat",),
    ("fetch", "alter_partition", "broker_heartbeat", "envelope"),
)
_MESSAGES = FaultKind(
    _BROKERS,
    "messages",
    choices={"direction": ("request", "response"), "apis": _APIS},
    medium=_PROXIES,
)

KINDS: Mapping[str, FaultKind] = {
    "kill": _deposes(_ONE_NODE, _GONE, (500, 3_500)),
    "stop": _deposes(_ONE_NODE, _GONE, (500, 3_000)),
    "kill-zookeeper": _away((Role.ONE_ZOOKEEPER,), _GONE, (500, 3_500)),
    "cut-zookeeper": _away(
        (*_BROKERS, Role.ACTIVE_CONTROLLER), "its session is suspended, or over", _LONG_MS
    ),
    "pause": _deposes(_ONE_NODE, "it was seen stopped", _LONG_MS),
    "resign": FaultKind(
        (Role.ACTIVE_CONTROLLER,),
        "it led, and was told to",
        not_on_processes="a leader resigns when it is stopped: `stop` has that",
    ),
    "partition": _deposes(
        (*_ONE_NODE, Role.MINORITY), _WAITED, _LONG_MS, choices=_CLIENTS, medium=_PROXIES
    ),
    "isolate-controller": _deposes((Role.ACTIVE_CONTROLLER,), _WAITED, _LONG_MS, medium=_PROXIES),
    "partition-one-way": _away(_ONE_NODE, _WAITED, _LONG_MS, choices=_ONE_WAY, medium=_PROXIES),
    "cut-controllers": _away(
        _BROKERS, _WAITED, _LONG_MS, choices={"direction": ("both", "out", "in")}, medium=_PROXIES
    ),
    "partition-ring": _away((Role.ALL,), _WAITED, medium=_PROXIES),
    "bridge": _away(_ANY, _WAITED, medium=_PROXIES),
    "delay": FaultKind(
        (*_ONE_NODE, Role.ALL),
        "frames that were late",
        choices={"delay_ms": (20, 50, 100), "jitter_ms": (0, 50)},
        medium=_PROXIES,
    ),
    "reset": FaultKind(_ONE_NODE, "connections", _SHORT_MS, medium=_PROXIES),
    "slow-close": FaultKind(
        _ONE_NODE,
        "connections",
        choices={"delay_ms": (500, 1_000)},
        medium=_PROXIES,
        not_simulated="the simulator has messages, not connections",
    ),
    "hold-rpc": _MESSAGES,
    "drop-rpc": _MESSAGES,
    "duplicate-rpc": replace(_MESSAGES, choices={"apis": _APIS}),  # requests alone
    "reorder-rpc": _MESSAGES,
    "netns-partition": _deposes(
        (*_ONE_NODE, Role.MINORITY), "packets", _LONG_MS, choices=_CLIENTS, medium=_NAMESPACES
    ),
    "netns-one-way": _away(_ONE_NODE, "packets", _LONG_MS, choices=_ONE_WAY, medium=_NAMESPACES),
    "netns-loss": FaultKind(
        _ONE_NODE, "packets", choices={"percent": (5, 10, 20)}, medium=_NAMESPACES
    ),
    # Brokers sync so seldom that they would not notice.
    "slow-disk": FaultKind(_VOTERS, "threads that waited"),
    "full-disk": _away(_BROKERS, _SAYS, not_simulated="the model disk has no end"),
    "fsync-error": _deposes(_ANY, _SAYS),
    "power-loss": _deposes(_BROKERS, "files that lost it", _SHORT_MS),
    "torn-write": _away(_ANY, "the node cuts it off and says so", (1_000, 2_000), choices=_LOGS),
    "bit-flip": _away(_ANY, "the node refuses and says so", (1_000, 2_000), choices=_LOGS),
    "wipe": _away(
        _BROKERS,
        "it was down meanwhile",
        _SHORT_MS,
        not_on_processes="nodes of a run of processes come back with what they have stored",
    ),
    "clock-jump": FaultKind(
        _ANY, "the dates that it tells", choices={"offset_ms": (-3_600_000, 3_600_000)}
    ),
    "fd-exhaustion": FaultKind(
        _ONE_NODE,
        "it answers nobody new, or says so",
        (1_500, 3_000),
        not_simulated="a simulated process has no descriptors",
    ),
    "membership": _away(
        _VOTERS,
        "what the quorum says",
        not_simulated="voters change in runs of the quorum alone, by an administrator",
    ),
    "rotate-certificates": FaultKind(
        _ONE_NODE,
        "another serial number is shown, and connections of before live on",
        not_simulated="the simulator speaks in the clear",
    ),
    "rolling-restart": _away((Role.BROKERS,), "another process runs", (9_000, 14_000)),
}


def kind_and_role(wanted: str) -> tuple[str, Role | None]:
    """`kill`, or `kill:majority`. Raises ValueError with what there is."""
    name, separator, role = wanted.partition(":")
    if name not in KINDS:
        close = difflib.get_close_matches(name, KINDS, n=1)
        perhaps = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(f"no fault is called {name!r}: {perhaps}there are {', '.join(KINDS)}")
    roles = [each.value for each in Role]
    if separator and role not in roles:
        raise ValueError(f"{wanted}: no role is called {role!r}: there are {', '.join(roles)}")
    return name, Role(role) if separator else None


def clash(kinds: Iterable[str]) -> tuple[str, str] | None:
    """Two that no cluster can have both: one needs proxies, the other namespaces."""
    for one, other in combinations(kinds, 2):
        if {KINDS[one].medium, KINDS[other].medium} == {Medium.PROXIES, Medium.NAMESPACES}:
            return one, other
    return None
