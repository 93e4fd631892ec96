"""`ssl.principal.mapping.rules`: the name of a user out of the distinguished name of a certificate.

The first rule that fits the whole name wins; without one that fits, nobody is known and the
connection is refused. DEFAULT leaves the name as it is.

Source: KIP-371; Kafka's SslPrincipalMapper. Patterns are Python's where Kafka's are Java's.
"""

import re
from dataclasses import dataclass

__all__ = ["DEFAULT_RULES", "NoMatchingRule", "PrincipalMapping"]

DEFAULT_RULES = "DEFAULT"
_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)|"
_SPLITTER = re.compile(rf"\s*(?:{_RULE})\s*(?:,\s*|$)")
_REFERENCE = re.compile(r"\\(.)|\$(\d+)")


class NoMatchingRule(ValueError):
    """A certificate whose name no rule is for."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    replacement: str
    case: str  # L: lower, U: upper, or as it is

    def apply(self, name: str) -> str | None:
        if self.pattern.fullmatch(name) is None:
            return None
        mapped = self.pattern.sub(self._expand, name)
        if self.case:
            return mapped.lower() if self.case == "L" else mapped.upper()
        return mapped

    def _expand(self, match: re.Match[str]) -> str:
        """`$1` stands for a group, `\\$` for a dollar; a group that there is not, for itself."""

        def part(reference: re.Match[str]) -> str:
            literal, digits = reference.groups()
            if literal is not None:
                return str(literal)
            for size in range(len(digits), 0, -1):  # Java's: as many digits as there are groups
                if int(digits[:size]) <= self.pattern.groups:
                    return (match[int(digits[:size])] or "") + digits[size:]
            return reference[0]

        return _REFERENCE.sub(part, self.replacement)


@dataclass(frozen=True, slots=True)
class PrincipalMapping:
    rules: tuple[_Rule | None, ...]  # None: DEFAULT
    text: str = DEFAULT_RULES

    @classmethod
    def parse(cls, text: str) -> "PrincipalMapping":
        """Raises ValueError, which names the rule that cannot be read."""
        rules: list[_Rule | None] = []
        at, text = 0, text.strip()
        while at < len(text):
            match = _SPLITTER.match(text, at)
            if match is None or match.end() == at:
                raise ValueError(f"expected RULE:pattern/replacement/[LU] or DEFAULT: {text[at:]}")
            default, pattern, replacement, case = match.groups()
            if default is not None:
                rules.append(None)
            elif pattern is not None:
                rules.append(_Rule(_compiled(pattern), replacement, case))
            at = match.end()
        return cls(tuple(rules), text)

    def name_of(self, distinguished_name: str) -> str:
        """Raises NoMatchingRule."""
        for rule in self.rules:
            mapped = distinguished_name if rule is None else rule.apply(distinguished_name)
            if mapped is not None:
                return mapped
        raise NoMatchingRule(f"no rule of {self.text!r} is for {distinguished_name!r}")


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"the pattern {pattern!r} is wrong: {error}") from error
