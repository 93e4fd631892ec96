"""What docs/compatibility.md says of APIs: which versions are served, and where these differ.

Made from the tables that the code itself goes by. A test holds the file to `renewed`.
"""

from collections.abc import Iterator

from wire.api_table import APIS, Api, camel_case
from wire.canonical import is_flexible
from wire.differences import DIFFERENCES, MUST_ARRIVE

__all__ = ["renewed"]

_BEGIN = "<!-- begin of what tests/wire/compatibility_page.py writes -->"
_END = "<!-- end of what tests/wire/compatibility_page.py writes -->"


def renewed(document: str) -> str:
    """The document, with what lies between the two marks as the tables have it now."""
    before, _, rest = document.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    assert after, "the marks are gone"
    return "\n".join([before + _BEGIN, "", *_apis(), "", *_differences(), "", _END + after])


def _apis() -> Iterator[str]:
    yield "## APIs"
    yield ""
    yield "| key | API | brokers | controllers | flexible from | forwarded |"
    yield "|---|---|---|---|---|---|"
    for api in APIS:
        forwarded = "yes" if api.forwardable and api.broker is not None else ""
        cells = (api.key, api.title, *_ranges(api), _flexible_from(api), forwarded)
        yield f"| {' | '.join(map(str, cells))} |"


def _ranges(api: Api) -> Iterator[str]:
    for served in (api.broker, api.controller):
        yield "-" if served is None else str(served)


def _flexible_from(api: Api) -> str:
    versions = [version for version in api.versions if is_flexible(api.name, version, "request")]
    return str(versions[0]) if versions else "-"


def _differences() -> Iterator[str]:
    yield "## Where versions differ by more than missing fields"
    yield ""
    for row in DIFFERENCES:
        versions = f"{row.versions.start}-{row.versions.stop - 1}"
        yield f"- {camel_case(row.api)} {row.kind} {versions}, `{row.entity}`: {row.story}"
    for (api, kind, entity), names in MUST_ARRIVE.items():
        fields = ", ".join(f"`{name}`" for name in names)
        yield (
            f"- {camel_case(api)} {kind}, `{entity}`: {fields} must arrive; it is not sent in a"
            " version that lacks it, unless it has its default."
        )
