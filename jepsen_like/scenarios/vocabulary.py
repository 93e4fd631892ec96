"""What a scenario may say, one line each: the tables of forms, and the words around them."""

from collections.abc import Iterator, Mapping

from jepsen_like.scenarios import (
    cluster_conditions,
    cluster_forms,
    directed_forms,
    quorum_conditions,
    quorum_forms,
    zk_forms,
)
from jepsen_like.scenarios.directed_forms import AROUND
from jepsen_like.scenarios.forms import Forms
from jepsen_like.scenarios.settings import STARTS

__all__ = ["VOCABULARIES", "vocabulary"]

# By what is started: its commands, and its conditions.
VOCABULARIES: Mapping[str, tuple[Forms, Forms]] = {
    "quorum": (quorum_forms.FORMS, quorum_conditions.CONDITIONS),
    "cluster": (cluster_forms.FORMS, cluster_conditions.CONDITIONS),
    "zookeeper": (zk_forms.FORMS, zk_forms.CONDITIONS),
}


def vocabulary() -> Iterator[dict[str, str]]:
    """What several kinds share is there once. Only schedules begin one with ZooKeeper."""
    for usage, meaning in STARTS.items():
        yield {"for": "start", "write": usage, "meaning": meaning}
    for usage, meaning in AROUND.items():
        yield {"for": "all", "write": usage, "meaning": meaning}
    shared, conditions = directed_forms.FORMS, directed_forms.CONDITIONS
    yield from _of("all", shared)
    yield from _of("quorum", quorum_forms.FORMS, shared)
    yield from _of("cluster", cluster_forms.FORMS, shared)
    yield from _of("ZooKeeper", zk_forms.FORMS, shared, cluster_forms.FORMS)
    yield from _of("condition, all", conditions)
    yield from _of("condition, quorum", quorum_conditions.CONDITIONS, conditions)
    yield from _of("condition, cluster", cluster_conditions.CONDITIONS, conditions)
    yield from _of(
        "condition, ZooKeeper", zk_forms.CONDITIONS, conditions, cluster_conditions.CONDITIONS
    )


def _of(what: str, forms: Forms, *shared: Forms) -> Iterator[dict[str, str]]:
    known = [form for others in shared for form in others.all]
    for form in forms.all:
        if form not in known:
            yield {"for": what, "write": form.usage, "meaning": form.meaning}
