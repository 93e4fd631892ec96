"""Login modules as `sasl.jaas.config` names them, with their options.

    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="broker" password="secret" user_broker="secret" user_alice="hers";

Source: Kafka's JaasConfig; the syntax of one entry of Java's login configuration.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["JaasEntry", "parse_jaas"]

_FLAGS = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/"""
    r"""|"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'"""
    r"""|(?P<mark>[=;])|(?P<word>[^\s"'=;]+)""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JaasEntry:
    module: str  # without its package
    options: Mapping[str, str] = field(repr=False)  # passwords among them

    @property
    def users(self) -> Mapping[str, str]:
        """The passwords that PLAIN's module lists, by user: `user_alice="hers"`."""
        prefix = "user_"
        return {
            name.removeprefix(prefix): value
            for name, value in self.options.items()
            if name.startswith(prefix)
        }


def parse_jaas(text: str) -> JaasEntry:
    """Raises ValueError, which repeats nothing of the text: it holds passwords."""
    tokens = _tokens(text)
    if len(tokens) < 3 or tokens[-1] != ("mark", ";"):
        raise ValueError("expected MODULE FLAG OPTIONS, and a semicolon at the end")
    (module_kind, module), (_, flag), *rest = tokens[:-1]
    if module_kind != "word" or flag.lower() not in _FLAGS:
        raise ValueError(f"expected a login module, and one of {', '.join(_FLAGS)} behind it")
    if len(rest) % 3:
        raise ValueError('expected options as name="value", and one login module')
    options = {}
    for (key_kind, key), equals, (value_kind, value) in zip(
        rest[::3], rest[1::3], rest[2::3], strict=True
    ):
        if "mark" in (key_kind, value_kind) or equals != ("mark", "="):
            raise ValueError('expected options as name="value", and one login module')
        options[key] = value
    return JaasEntry(module=module.rpartition(".")[2], options=options)


def _tokens(text: str) -> list[tuple[str, str]]:
    """Words, texts in quotes, and marks; each with its kind."""
    found, position = [], 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise ValueError("a quote that is not closed")
        position = token.end()
        if token.lastgroup in ("double", "single"):
            found.append(("text", _ESCAPE.sub(_unescaped, token[token.lastgroup])))
        elif token.lastgroup is not None:
            found.append((token.lastgroup, token[0]))
    return found


def _unescaped(escape: re.Match[str]) -> str:
    return _ESCAPED.get(escape[1], escape[1])
