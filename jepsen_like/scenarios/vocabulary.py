"""What a scenario may say, one line each: the tables of forms, and the words around them."""

from collections.abc import Iterator

from jepsen_like.scenarios import quorum_forms
from jepsen_like.scenarios.forms import Forms
from jepsen_like.scenarios.stage_forms import AROUND
from jepsen_like.scenarios.starts import STARTS

__all__ = ["vocabulary"]


def vocabulary() -> Iterator[dict[str, str]]:
    yield from _of(STARTS)
    for usage, meaning in AROUND.items():
        yield {"write": usage, "meaning": meaning}
    yield from _of(quorum_forms.FORMS)
    yield from _of(quorum_forms.CONDITIONS, "condition: ")


def _of(forms: Forms, prefix: str = "") -> Iterator[dict[str, str]]:
    for form in forms.all:
        yield {"write": form.usage, "meaning": prefix + form.meaning}
