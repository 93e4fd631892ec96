"""A switch turns one improvement of a design off, and nothing else."""

from dataclasses import fields

import pytest

from wire.zk.designs import DESIGNS, ZK_KIP497, ZK_REDESIGN, Design
from wire.zk.switches import SWITCHES, switched_off, without


def changed(design: Design, other: Design) -> set[str]:
    names = (each.name for each in fields(Design))
    return {name for name in names if getattr(design, name) != getattr(other, name)}


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("design", DESIGNS.values(), ids=lambda each: each.name)
def test_switch_changes_its_field_alone_or_is_refused_as_it_is_off(
    design: Design, name: str
) -> None:
    switch = SWITCHES[name]
    if not getattr(design, switch.field):
        why = switch.off if design.has_controller else "it has no controller"
        with pytest.raises(ValueError, match=f"{design.name} has no {name} to turn off: {why}"):
            without(design, name)
        return
    switched = without(design, name)
    assert changed(design, switched) == {switch.field}
    assert switched_off(switched) == (name,)


def test_every_switch_is_one_of_the_newest_designs() -> None:
    assert without(ZK_KIP497, ",".join(SWITCHES)).name == "zk-kip497"
    assert len({each.field for each in SWITCHES.values()}) == len(SWITCHES) == 6


def test_design_as_documented_has_nothing_turned_off() -> None:
    assert all(switched_off(each) == () for each in DESIGNS.values())
    assert without(ZK_REDESIGN, "") == ZK_REDESIGN


def test_several_are_told_in_one_order() -> None:
    switched = without(ZK_REDESIGN, " generation-check, batched-commands,generation-check,")
    assert switched_off(switched) == ("batched-commands", "generation-check")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pipelined-write", r"no switch 'pipelined-write': did you mean 'pipelined-writes'\?"),
        ("pipelines_writes", r"did you mean 'pipelined-writes'\?"),
        ("batched-commands,zebra", r"no switch 'zebra': one of pipelined-writes, "),
    ],
)
def test_unknown_name_is_refused_with_the_nearest(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        without(ZK_REDESIGN, text)
