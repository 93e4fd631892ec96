"""`inspect at` and `diff`: the cluster as it was, and what has changed."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from quorumlab.arguments import UsageError
from quorumlab.folding import folded
from quorumlab.inspection.batches import last_batch
from quorumlab.inspection.browser import outline, value_text
from quorumlab.inspection.entries import time_text
from quorumlab.inspection.states import Moment, Replay, moment_of, replay
from quorumlab.inspection.stream import opened
from quorumlab.inspection.target import Target
from quorumlab.inspection.tree import Change, Node, image_differences, leaves, plain, tree_of
from quorumlab.output import (
    complain,
    one_line,
    print_json,
    say,
    say_folded,
    table_lines,
    topic_lines,
)
from quorumlab.verbs.inspecting import DAMAGED, say_lines, scanning

__all__ = ["named_moment", "run_at", "run_diff", "state_at"]


def state_at(target: Target, moment: Moment) -> Replay:
    """Complains about what is damaged."""
    with scanning(target) as watched:
        state = replay(watched, moment)
    for problem in state.problems:
        complain(problem)
    last = last_batch(target.segments[-1]) if target.segments else None
    if last is not None and moment.offset is not None and moment.offset > last.header.last_offset:
        end = f"the log ends after offset {last.header.last_offset}"
        complain(f"offset {moment.offset} is not there yet: {end}, and this is its state")
    return state


def named_moment(text: str | None) -> Moment:
    """Parses an option of the command line."""
    try:
        return moment_of(text)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _place_of(state: Replay) -> str:
    at = state.image.stable.at
    if at.offset <= 0:
        return "before the first record"
    return f"after offset {at.offset - 1}, epoch {at.epoch}, {time_text(state.timestamp_ms)}"


def run_at(args: SimpleNamespace, target: Target) -> int:
    state = state_at(target, named_moment(args.place))
    tree = tree_of(state.image)
    match args.format:
        case "json":
            print_json(plain(tree))
        case "jsonl":
            print_json(
                [{"path": path, "value": value} for path, value in leaves(tree)], form="jsonl"
            )
        case "tree":
            say_lines(outline(tree))
        case _:
            say(_place_of(state))
            say("")
            say_lines(_state_lines(tree))
    return DAMAGED if state.problems else 0


# --- diff -----------------------------------------------------------------------------------


def run_diff(args: SimpleNamespace) -> int:
    """`-` is what only the first has, `+` what only the second has."""
    with ExitStack() as stack:
        match args.between:
            case [first, second] if first.isdecimal() and not Path(first).exists():
                raise UsageError(f"diff takes A B TARGET: what is B, beside {first}?")
            case [first, second]:
                targets = [stack.enter_context(opened(text)) for text in (first, second)]
                places = [args.at, args.at]
                names = [first, second]
            case [first, second, text]:
                target = stack.enter_context(opened(text))
                targets, places, names = [target, target], [first, second], [text, text]
                if args.at is not None:
                    raise UsageError("--at is for two targets; here A and B say where")
            case _:
                raise UsageError("diff takes A B TARGET, or two TARGETs")
        moments = [named_moment(place) for place in places]
        states = [state_at(*each) for each in zip(targets, moments, strict=True)]
    found = list(image_differences(*(state.image for state in states)))
    if args.format == "text":
        for sign, name, state in zip(("---", "+++"), names, states, strict=True):
            say_folded(f"{sign} {name} {_place_of(state)}")
        say_lines(folded(map(_change_text, found)) if found else ["no difference"])
    elif args.format == "jsonl":
        print_json([asdict(change) for change in found], form="jsonl")
    else:
        ends = [
            {"target": name, "offset": state.image.at.offset - 1, "epoch": state.image.at.epoch}
            for name, state in zip(names, states, strict=True)
        ]
        changes = [asdict(change) for change in found]
        print_json({"before": ends[0], "after": ends[1], "changes": changes})
    return DAMAGED if any(state.problems for state in states) else 0


def _change_text(change: Change) -> str:
    before, after = value_text(change.before), value_text(change.after)
    if change.before is None:
        return f"+ {change.path} {after}"
    if change.after is None:
        return f"- {change.path} {before}"
    return f"  {change.path:<54} {before} -> {after}"


def _state_lines(tree: Node) -> Iterator[str]:
    """Prints a `tree_of` without its empty parts."""
    parts = (_features(tree), _brokers(tree), _controllers(tree), _topics(tree), _configs(tree))
    for number, part in enumerate(filter(None, map(list, parts))):
        if number:
            yield ""
        yield from part


def _features(tree: Node) -> Iterator[str]:
    rows = [{"feature": name, "level": level} for name, level in tree["features"].items()]
    return _table(rows)


def _brokers(tree: Node) -> Iterator[str]:
    rows = [
        {
            "broker": node_id,
            "state": _state(broker),
            "epoch": broker["epoch"],
            "rack": broker["rack"] or "-",
            "listeners": ",".join(broker["listeners"]),
        }
        for node_id, broker in tree["brokers"].items()
    ]
    return _table(rows)


def _state(broker: Mapping[str, Any]) -> str:
    words = ["fenced" if broker["fenced"] else "active"]
    words += ["shutting down"] * broker["in_controlled_shutdown"]
    return ", ".join(words)


def _controllers(tree: Node) -> Iterator[str]:
    rows = [
        {"controller": node_id, "listeners": ",".join(controller["listeners"])}
        for node_id, controller in tree["controllers"].items()
    ]
    return _table(rows)


def _topics(tree: Node) -> Iterator[str]:
    for name, topic in tree["topics"].items():
        rows = [
            {
                **partition,
                "partition": index,
                "elr": partition.get("eligible_leader_replicas", ()),
                "last_known_elr": partition.get("last_known_elr", ()),
            }
            for index, partition in topic["partitions"].items()
        ]
        described = {
            "topic": name,
            "topic_id": topic["id"],
            "partition_count": len(rows),
            "replication_factor": len(rows[0]["replicas"]) if rows else 0,
            "configs": {key: one_line(value) for key, value in topic["configs"].items()},
            "partitions": rows,
        }
        yield from topic_lines(described)


def _configs(tree: Node) -> Iterator[str]:
    """Prints what is configured, but for topics: theirs stands beside them."""
    rows = [
        {"config of": f"{kind} {resource}", "name": name, "value": one_line(value)}
        for kind, resources in tree["configs"].items()
        for resource, values in resources.items()
        for name, value in values.items()
        if kind != "topic"
    ]
    return _table(rows)


def _table(rows: list[dict[str, Any]]) -> Iterator[str]:
    return table_lines(rows, list(rows[0])) if rows else iter(())
