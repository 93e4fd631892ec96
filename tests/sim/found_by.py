"""What docs/planted-bugs.md says that a planted bug is found by, to compare with what a run found.

The page may name several rules, since it depends on the seed which of them breaks first.
"""

import re
from functools import cache
from pathlib import Path

from jepsen_like.sim.assemblies.quorum.simulation import Outcome

__all__ = ["found_by", "rule_broken"]

_PAGE = Path(__file__).parents[2] / "docs" / "planted-bugs.md"
_ROW = re.compile(r"\| `(\w+)` \| .* \| ([^|]+) \| [^|]+ \|")
_WORDS = {"raised": "an assertion", "stopped": "the node stops"}


@cache
def _page() -> dict[str, str]:
    rows = map(_ROW.fullmatch, _PAGE.read_text().splitlines())
    return {row[1]: row[2] for row in rows if row is not None}


def found_by(plant: str) -> list[str]:
    """The rules that the page names, in its words."""
    return _page()[plant].split(", ")


def rule_broken(outcome: Outcome) -> str:
    """The rule that a run broke, in the words of the page."""
    return _WORDS.get(outcome.rule, outcome.rule)
