"""docs/compatibility.md, made from the tables: what is served, and where versions differ.

A test holds the file to `markdown()`.
"""

from collections.abc import Iterator

from wire.api_table import APIS, Api
from wire.canonical import is_flexible
from wire.differences import DIFFERENCES, MUST_ARRIVE
from wire.schema import camel_case

__all__ = ["markdown"]

_INTRODUCTION = """\
# Compatibility

Which APIs of the Kafka protocol a node serves, and in which versions. Made from the table that the
code itself goes by (`wire/api_table.py`); every version listed is exercised by a test that compares
its bytes with those of an independent implementation. To make it again:

```
python -c 'import wire.compatibility as c; print(c.markdown(), end="")' > docs/compatibility.md
```

A request in any other version closes the connection, with one line in the log; ApiVersions is
answered with error 35 and the range instead, so that a newer client can ask again.
"""

_NOTES = """\
## Notes

- Produce 0 to 2 are advertised and refused, as Kafka 4 does: librdkafka turns compression off
  where they are missing.
- ApiVersions on a broker cuts forwarded APIs to what the active controller serves too.
- Unknown tagged fields are skipped, and unknown error codes read as `UNKNOWN_SERVER_ERROR`, so that
  newer peers are understood.
- Consumer groups are those of the classic protocol, with static members taken for dynamic ones;
  OffsetCommit and OffsetFetch 10, which name topics by id, are not served.
- Client quotas, SCRAM credentials, delegation tokens and (where `authorizer.class.name` is set)
  ACLs are kept in the metadata and shown. Nothing enforces them: everybody may do everything.
- A quota for an address names the address: host names are not looked up.
- KIP-848's consumer groups, transactions beyond InitProducerId, SASL, TLS, tiered storage and share
  groups are not served.
- What Apache Kafka itself does beside our nodes: [interoperability.md](interoperability.md).
"""


def markdown() -> str:
    """The whole file."""
    return "\n".join([_INTRODUCTION, *_apis(), "", *_differences(), "", _NOTES])


def _apis() -> Iterator[str]:
    yield "## APIs"
    yield ""
    yield "| key | API | brokers | controllers | flexible from | forwarded |"
    yield "|---|---|---|---|---|---|"
    for api in APIS:
        forwarded = "yes" if api.forwardable and api.broker is not None else ""
        cells = (api.key, camel_case(api.name), *_ranges(api), _flexible_from(api), forwarded)
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
