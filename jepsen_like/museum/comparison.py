"""An exhibit is shown: the red run and the green one, and whether they are what they should be.

red, judged        the simulator's judges name the rule that breaks
red, not judged    the clients' history alone tells, where a client can see it
green              no judge objects, and the history is valid
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from jepsen_like.checkers.verdict import Outcome, Verdict
from jepsen_like.museum.item import Exhibit, Item
from jepsen_like.museum.playing import End, Played, play
from jepsen_like.sim.time.ending import ANY_ERROR, described

__all__ = ["Comparison", "Counted", "compare", "compare_item", "count_seeds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    exhibit: Exhibit
    judged: Played | None  # red; None where judges excuse it
    unjudged: Played | None  # red; None where no client can see it
    seen: Verdict | None  # on the history of the latter
    green: Played
    green_seen: Verdict

    @property
    def red(self) -> Played:
        """The one to be told."""
        told = self.unjudged or self.judged
        assert told is not None
        return told

    def problems(self) -> Iterator[str]:
        """Why this is not what the museum says; nothing if it is."""
        yield from self.not_red()
        yield from self.not_green()

    def not_red(self) -> Iterator[str]:
        exhibit = self.exhibit
        if self.unjudged is not None and self.unjudged.end is End.ERROR:
            yield _describe(self.unjudged)
        if self.judged is not None and self.judged.rule != exhibit.violated:
            yield f"{exhibit.violated} should have broken: {_describe(self.judged)}"
        if self.seen is not None:
            rules = {finding.rule for finding in self.seen.findings}
            if exhibit.seen not in rules:
                yield f"the history should show {exhibit.seen}: {sorted(rules) or 'nothing'}"

    def not_green(self) -> Iterator[str]:
        if self.green.end is not End.HOLDS:
            yield f"the mended run: {_describe(self.green)}"
        if self.green_seen.outcome is Outcome.VIOLATED:
            yield f"the mended run's history: {self.green_seen.findings}"

    @property
    def is_right(self) -> bool:
        return not list(self.problems())


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Over several seeds. Void: with those times, the schedule was another one."""

    seeds: int = 0
    red: int = 0
    green: int = 0
    void: int = 0
    errors: tuple[str, ...] = ()  # of each seed that ended by an exception: which, and which one

    @property
    def is_right(self) -> bool:
        return self.red > 0 and self.green + self.void == self.seeds and not self.errors


def compare(exhibit: Exhibit, seed: int = 0) -> Comparison:
    judged = _play_red(exhibit, seed, is_judged=True) if exhibit.violated else None
    unjudged = _play_red(exhibit, seed, is_judged=False) if exhibit.seen else None
    green = play(exhibit.schedule, settings=exhibit.mended, seed=seed)
    return Comparison(
        exhibit=exhibit,
        judged=judged,
        unjudged=unjudged,
        seen=None if unjudged is None else unjudged.verdict(),
        green=green,
        green_seen=green.verdict(),
    )


def _play_red(exhibit: Exhibit, seed: int, *, is_judged: bool) -> Played:
    return play(
        exhibit.schedule,
        plants=exhibit.plants,
        settings=exhibit.settings,
        seed=seed,
        is_judged=is_judged,
    )


def compare_item(item: Item) -> list[Comparison]:
    return [compare(exhibit) for exhibit in item.exhibits]


def count_seeds(exhibit: Exhibit, seeds: int) -> Counted:
    """The schedule with the times of so many seeds. What tells is what the museum names first."""
    counted = Counted()
    for seed in range(seeds):
        counted = replace(counted, seeds=counted.seeds + 1)
        try:
            counted = _counted(exhibit, seed, counted)
        except ANY_ERROR as error:
            told = f"seed {seed}: error {type(error).__name__} {described(error)}"
            counted = replace(counted, errors=(*counted.errors, told))
    return counted


def _counted(exhibit: Exhibit, seed: int, counted: Counted) -> Counted:
    red = _play_red(exhibit, seed, is_judged=bool(exhibit.violated))
    green = play(exhibit.schedule, settings=exhibit.mended, seed=seed)
    is_green = green.end is End.HOLDS and green.verdict().outcome is not Outcome.VIOLATED
    errors = [f"seed {seed}: {_describe(each)}" for each in (red, green) if each.end is End.ERROR]
    return replace(
        counted,
        red=counted.red + (not errors and _is_red(exhibit, red)),
        green=counted.green + is_green,
        void=counted.void + (green.end is End.VOID),
        errors=(*counted.errors, *errors),
    )


def _is_red(exhibit: Exhibit, red: Played) -> bool:
    return red.is_broken if exhibit.violated else red.verdict().outcome is Outcome.VIOLATED


def _describe(played: Played) -> str:
    return f"{played.end.value} {played.rule} {played.detail}".rstrip()
