"""What a scenario may say, one line each: the tables of forms, and the words around them."""

from collections.abc import Iterator

from jepsen_like.scenarios import (
    cluster_conditions,
    cluster_forms,
    quorum_conditions,
    quorum_forms,
    stage_forms,
)
from jepsen_like.scenarios.forms import Forms
from jepsen_like.scenarios.stage_forms import AROUND
from jepsen_like.scenarios.starts import STARTS

__all__ = ["vocabulary"]


def vocabulary() -> Iterator[dict[str, str]]:
    """What a quorum and a cluster share is there once."""
    yield from _of("start", STARTS)
    for usage, meaning in AROUND.items():
        yield {"for": "both", "write": usage, "meaning": meaning}
    yield from _of("both", stage_forms.FORMS)
    yield from _of("quorum", quorum_forms.FORMS, stage_forms.FORMS)
    yield from _of("cluster", cluster_forms.FORMS, stage_forms.FORMS)
    yield from _of("condition, both", stage_forms.CONDITIONS)
    yield from _of("condition, quorum", quorum_conditions.CONDITIONS, stage_forms.CONDITIONS)
    yield from _of("condition, cluster", cluster_conditions.CONDITIONS, stage_forms.CONDITIONS)


def _of(what: str, forms: Forms, shared: Forms | None = None) -> Iterator[dict[str, str]]:
    known = [] if shared is None else shared.all
    for form in forms.all:
        if form not in known:
            yield {"for": what, "write": form.usage, "meaning": form.meaning}
