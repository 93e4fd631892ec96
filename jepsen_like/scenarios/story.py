"""What a scenario tells: lines in the order in which things happened."""

__all__ = ["Story", "offsets"]


class Story:
    """Collects lines until they are taken."""

    def __init__(self) -> None:
        self.failures: list[str] = []  # what a scenario expected, and did not come
        self._lines: list[str] = []

    def tell(self, line: str) -> None:
        self._lines.append(line)

    def fail(self, line: str) -> None:
        self.failures.append(line)
        self._lines.append(line)

    def take(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines


def offsets(first: int, end: int) -> str:
    """Of records: `4`, or `4-6`."""
    return str(first) if end - first == 1 else f"{first}-{end - 1}"
