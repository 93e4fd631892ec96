"""Which messages a fault strikes: single requests and answers between nodes.

    apis        names of APIs, each with a rule of its own; the backend has a default
    direction   "request": what the targets ask; "response": what they are answered
    trigger     `once()`, `on_call(n)`, `times(n)`, `with_probability(p)`, `always()`

What is held goes on when the fault heals. Clients are left alone: a network can double what a
client sent only if the client sends it again, and then that client knows. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence

from jepsen_like.faults.fault import Fault
from jepsen_like.faults.message_rules import Action, FrameRule, api_key_of, parse_trigger

__all__ = ["MESSAGE_KINDS", "rules_of"]

MESSAGE_KINDS: Mapping[str, Action] = {
    "hold-rpc": Action.HOLD,
    "drop-rpc": Action.DROP,
    "duplicate-rpc": Action.DUPLICATE,
    "reorder-rpc": Action.REORDER,
}


def rules_of(
    fault: Fault,
    targets: Sequence[int],
    nodes: Iterable[int],
    *,
    apis: Iterable[str],
    triggers: Mapping[str, str],
) -> list[FrameRule]:
    """`triggers`: what is the default of each kind. Raises ValueError for unknown names."""
    wanted = fault.parameters
    is_request = wanted.get("direction", "request") == "request"
    trigger = parse_trigger(wanted.get("trigger", triggers[fault.kind]))
    return [
        FrameRule(
            action=MESSAGE_KINDS[fault.kind],
            source=target if is_request else other,
            target=other if is_request else target,
            api_key=api_key_of(name),
            is_request=is_request,
            trigger=trigger,
        )
        for target in targets
        for other in nodes
        if other != target
        for name in apis
    ]
