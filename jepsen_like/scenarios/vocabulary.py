"""What a scenario may say, one line each: the tables of forms, and the words around them."""

from collections.abc import Iterator, Mapping

from jepsen_like.scenarios.cluster import cluster_conditions, cluster_forms
from jepsen_like.scenarios.language.forms import Form, Forms
from jepsen_like.scenarios.quorum import quorum_conditions, quorum_forms
from jepsen_like.scenarios.settings import STARTS
from jepsen_like.scenarios.stage import directed_forms
from jepsen_like.scenarios.stage.directed_forms import AROUND
from jepsen_like.scenarios.zookeeper import zk_forms

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
    shared = {"all": (directed_forms.FORMS, directed_forms.CONDITIONS)}
    told: list[Form] = []
    for place, prefix in enumerate(("", "condition, ")):
        for kind, tables in {**shared, **VOCABULARIES}.items():
            new = [form for form in tables[place].all if form not in told]
            told += new
            for form in new:
                yield {"for": prefix + kind, "write": form.usage, "meaning": form.meaning}
