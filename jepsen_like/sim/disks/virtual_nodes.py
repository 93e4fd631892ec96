"""Files and directories in memory: what programs see, what the medium has, and what lies between.

A program sees a file's `cache` and a directory's `entries`. The medium has something older, until a
sync: the changes that it lacks are `pending`, in order. A power failure keeps any of them: of a
write any sectors, of a size or a directory any change, each by itself and none because of another.
That is more than a journal would allow, and no more than POSIX does.

A sync that fails is the "fsyncgate" of 2018: some sectors have reached the medium, the others are
taken for written. The file can still be read as it was, until the system forgets what it has in
memory; the next sync has nothing to do and succeeds.
"""

from random import Random

__all__ = ["SECTOR_BYTES", "VirtualDirectory", "VirtualFile"]

SECTOR_BYTES = 512  # what a disk writes whole or not at all

Write = tuple[int, bytes]  # position, data
Change = Write | int  # or another size
Naming = dict[str, "VirtualFile | VirtualDirectory | None"]  # None: the name is gone


class VirtualFile:
    __slots__ = ("cache", "medium", "pending")

    def __init__(self) -> None:
        self.cache = bytearray()
        self.medium = bytearray()
        self.pending: list[Change] = []

    def copy(self) -> "VirtualFile":
        """As a program sees it, made durable."""
        other = VirtualFile()
        other.cache, other.medium = bytearray(self.cache), bytearray(self.cache)
        return other

    def change(self, change: Change) -> None:
        _apply(self.cache, change)
        self.pending.append(change)

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.medium, change)
        self.pending.clear()

    def fail_to_sync(self, random: Random) -> None:
        """Sizes are no pages: a journal has them."""
        for change in self.pending:
            if isinstance(change, int):
                _apply(self.medium, change)
            else:
                _apply_sectors(self.medium, change, random, share=0.5)
        self.pending.clear()

    def forget_pages(self) -> bool:
        """Read again from the medium what is not waiting to be written to it.

        Returns whether that is something else: a sync has failed.
        """
        before, self.cache = self.cache, bytearray(self.medium)
        for change in self.pending:
            _apply(self.cache, change)
        return self.cache != before

    def lose_power(self, random: Random) -> bool:
        """Returns whether anything was lost."""
        pending, self.pending = self.pending, []
        share = random.choice((0.0, 0.5, 1.0)) if pending else 1.0
        for change in pending:
            if not isinstance(change, int):
                _apply_sectors(self.medium, change, random, share=share)
            elif random.random() < share:
                _apply(self.medium, change)
        has_lost = self.cache != self.medium
        self.cache = bytearray(self.medium)
        return has_lost


class VirtualDirectory:
    __slots__ = ("entries", "medium", "pending")

    def __init__(self) -> None:
        self.entries: dict[str, VirtualFile | VirtualDirectory] = {}
        self.medium: dict[str, VirtualFile | VirtualDirectory] = {}
        self.pending: list[Naming] = []

    def copy(self) -> "VirtualDirectory":
        """As a program sees it, made durable, with all that is in it."""
        other = VirtualDirectory()
        other.entries = {name: node.copy() for name, node in self.entries.items()}
        other.medium = dict(other.entries)
        return other

    def change(self, naming: Naming) -> None:
        """One change, of one name or of two: a renaming happens whole or not at all."""
        _name(self.entries, naming)
        self.pending.append(naming)

    def sync(self) -> None:
        for naming in self.pending:
            _name(self.medium, naming)
        self.pending.clear()

    def lose_power(self, random: Random) -> bool:
        """With all that is in it. Returns whether a name was lost, or came back."""
        pending, self.pending = self.pending, []
        share = random.choice((0.0, 0.5, 1.0)) if pending else 1.0
        for naming in pending:
            if random.random() < share:
                _name(self.medium, naming)
        has_lost = self.entries != self.medium
        self.entries = dict(self.medium)
        return has_lost


def _name(names: "dict[str, VirtualFile | VirtualDirectory]", naming: Naming) -> None:
    for name, node in naming.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _apply(content: bytearray, change: Change) -> None:
    if isinstance(change, int):
        del content[change:]
        content += bytes(change - len(content))
        return
    position, data = change
    content += bytes(max(0, position - len(content)))
    content[position : position + len(data)] = data


def _apply_sectors(content: bytearray, write: Write, random: Random, *, share: float) -> None:
    """Those parts of a write that lie in the sectors that reach the medium."""
    position, data = write
    end = position + len(data)
    while position < end:
        sector_end = min(end, position - position % SECTOR_BYTES + SECTOR_BYTES)
        if random.random() < share:
            at = position - write[0]
            _apply(content, (position, data[at : at + sector_end - position]))
        position = sector_end
