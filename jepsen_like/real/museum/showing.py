"""An exhibit on real processes: the red run and the green one, and whether they are what they
should be. Red nodes are planted, green ones are as they ship."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jepsen_like.museum.item import Exhibit, Item
from jepsen_like.museum.playing import End, Played
from jepsen_like.museum.telling import told_play
from jepsen_like.real.museum.playing import play_really
from jepsen_like.verdict import Outcome

__all__ = ["ReallyShown", "show_really", "told_really"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReallyShown:
    exhibit: Exhibit
    red: Played
    green: Played

    def rules(self) -> list[str]:
        """All that told of the red run."""
        found = {finding.rule for finding in self.red.verdict().findings}
        return [*filter(None, [self.red.rule]), *sorted(found)]

    def not_red(self) -> Iterator[str]:
        if self.exhibit.really not in self.rules():
            yield f"not {self.exhibit.really} but {', '.join(self.rules()) or 'nothing'}"

    def not_green(self) -> Iterator[str]:
        if self.green.end is not End.HOLDS:
            yield f"{self.green.end.value} {self.green.rule} {self.green.detail}".rstrip()
        verdict = self.green.verdict()
        if verdict.outcome is Outcome.VIOLATED:
            yield "; ".join(finding.rule for finding in verdict.findings)

    @property
    def is_right(self) -> bool:
        return not [*self.not_red(), *self.not_green()]


def show_really(exhibit: Exhibit, directory: Path) -> ReallyShown:
    """Red in DIR/red, green in DIR/green: the logs of the nodes are there afterwards."""
    assert exhibit.really, exhibit.schedule
    return ReallyShown(
        exhibit=exhibit,
        red=play_really(exhibit, directory / "red", is_red=True),
        green=play_really(exhibit, directory / "green", is_red=False),
    )


def told_really(item: Item, shown: ReallyShown) -> Iterator[str]:
    """Lines."""
    yield f"{item.id}  {item.title}  ({item.issue}), on real processes"
    yield ""
    yield f"RED, with {shown.exhibit.hole}"
    yield from told_play(shown.red, shown.exhibit.really)
    yield ""
    yield "GREEN, as shipped" if not shown.exhibit.mended else f"GREEN, {shown.exhibit.mended}"
    yield from told_play(shown.green, "")
    wrong = [*shown.not_red(), *shown.not_green()]
    yield from (f"NOT AS IT SHOULD BE: {problem}" for problem in wrong)
