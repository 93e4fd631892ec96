"""The matrix as a page: a row for each API and listener, a column for each who asks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from tests.security_matrix.asking import Cell
from tests.security_matrix.rights import PEOPLE, RIGHTS, Right

__all__ = ["page"]

_HEAD = """# Who may ask what

Every API in every version, asked of one node of ours and of one of Apache Kafka 4.3.1 with the same
users and ACLs, on the broker's listener and on the controller's. `anonymous` comes over a listener
that asks for nothing, `nobody` has shown who he is and has no right, `able` has the rights of the
second column and no other, `admin` is a super user, `node-1` has the node's own credentials, and
`node-2` those of another node: it has CLUSTER_ACTION. Requests are valid and leave the cluster as
it was: where a right suffices, an answer may still hold an error of another kind.

A cell holds the errors in the answer; where Kafka's are others, they stand behind `Kafka:`. Answers
are compared field by field: what differs is in `tests/differential/known.toml` and
`tests/security_matrix/known.toml`, each with its reason.

Made by `python -m tests.security_matrix --page docs/security-matrix.md`.
"""
_OPERATIONS = (
    "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE",
)  # fmt: skip
_KINDS = {2: "topic", 3: "group", 4: "cluster", 5: "transactional id"}
_SHORT = {"_AUTHORIZATION_FAILED": " refused", "_": " "}


def page(cells: Iterable[Cell], *, told: Sequence[str] = ()) -> str:
    """`told`: lines about the run."""
    lines = [_HEAD, *told]
    ordered = sorted(cells, key=lambda cell: (cell.listener, cell.api.key, cell.version))
    for listener, asked in groupby(ordered, key=lambda cell: cell.listener):
        lines += ["", f"## On the {listener}'s listener", "", *_table(list(asked))]
    return "\n".join(lines) + "\n"


def _table(cells: Sequence[Cell]) -> Iterator[str]:
    yield "| API | versions | rights of `able` | " + " | ".join(PEOPLE) + " |"
    yield "|" + "---|" * (len(PEOPLE) + 3)
    for title, of_api in groupby(cells, key=lambda cell: cell.api.title):
        rows = _rows(list(of_api))
        for row, versions in rows.items():
            api = versions[0].api.name
            numbers = f"{versions[0].version}-{versions[-1].version}"
            yield f"| {title} | {numbers} | {_rights(RIGHTS[api])} | {' | '.join(row)} |"


def _rows(cells: Sequence[Cell]) -> Mapping[tuple[str, ...], list[Cell]]:
    """Versions with the same answers share a row."""
    rows: dict[tuple[str, ...], list[Cell]] = {}
    for _, of_version in groupby(cells, key=lambda cell: cell.version):
        asked = list(of_version)
        by_who = {cell.who: _text(cell) for cell in asked}
        rows.setdefault(tuple(by_who[who] for who in PEOPLE), []).append(asked[0])
    return rows


def _rights(rights: Sequence[Right]) -> str:
    return ", ".join(f"{_OPERATIONS[right.operation - 3]} {_KINDS[right.kind]}" for right in rights)


def _text(cell: Cell) -> str:
    ours, kafka = _words(cell.ours), _words(cell.kafka)
    return ours if ours == kafka else f"{ours} (Kafka: {kafka})"


def _words(errors: str) -> str:
    for long, short in _SHORT.items():
        errors = errors.replace(long, short)
    return errors.lower()
