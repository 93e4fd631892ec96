"""`quorumlab users`: SCRAM credentials. A password leaves this process as salted bytes alone.

Source: KIP-554; RFC 5802; Kafka's ConfigCommand and ScramFormatter, which leave SASLprep out.
"""

import getpass
import secrets
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jepsen_like.real.layout import ClusterError
from quorumlab.arguments import UsageError
from quorumlab.output import answer, complain, table_lines
from quorumlab.verbs.common import in_bounds, one_of, take_defaults
from quorumlab.verbs.connecting import check, connected
from wire.errors import ErrorCode
from wire.messages.scram_users import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)
from wire.security.scram import ITERATIONS_MIN, SCRAM_SHA_256, SCRAM_SHA_512

__all__ = ["add", "delete", "list_users"]

_SALT_BYTES = 26  # about as many as Kafka's tools make
_ITERATIONS_MAX = 16_384  # Kafka's ScramMechanism
_FAMILIES = {each.mechanism: each for each in (SCRAM_SHA_256, SCRAM_SHA_512)}
_NAMES = {each.number: name for name, each in _FAMILIES.items()}


def add(args: SimpleNamespace) -> int:
    take_defaults(args, {"mechanism": SCRAM_SHA_512.mechanism, "iterations": ITERATIONS_MIN})
    one_of(_FAMILIES, "--mechanism", args.mechanism)
    in_bounds(args, iterations=(ITERATIONS_MIN, _ITERATIONS_MAX))
    family, salt = _FAMILIES[args.mechanism], secrets.token_bytes(_SALT_BYTES)
    upsertion = ScramCredentialUpsertion(
        name=args.user,
        mechanism=family.number,
        iterations=args.iterations,
        salt=salt,
        salted_password=family.salted(_password(args), salt, args.iterations),
    )
    _alter(args, AlterUserScramCredentialsRequest(upsertions=(upsertion,)))
    told = {"user": args.user, "mechanism": args.mechanism, "iterations": args.iterations}
    answer(args.format, told, [f"User {args.user} has a password now, by {args.mechanism}."])
    return 0


def delete(args: SimpleNamespace) -> int:
    if args.mechanism is not None:
        one_of(_FAMILIES, "--mechanism", args.mechanism)
    known = [row["mechanism"] for row in _rows(args, args.user)]
    asked = [args.mechanism] if args.mechanism else known
    deletions = (
        ScramCredentialDeletion(name=args.user, mechanism=_FAMILIES[m].number) for m in asked
    )
    _alter(args, AlterUserScramCredentialsRequest(deletions=tuple(deletions)))
    told = {"user": args.user, "deleted": asked}
    answer(args.format, told, [f"Deleted {' and '.join(asked)} of user {args.user}."])
    return 0


def list_users(args: SimpleNamespace) -> int:
    rows = _rows(args, args.user)
    answer(args.format, rows, table_lines(rows, ("user", "mechanism", "iterations")))
    return 0


def _alter(args: SimpleNamespace, request: AlterUserScramCredentialsRequest) -> None:
    with connected(args) as client:
        results = client.ask(request, AlterUserScramCredentialsResponse).results
    for result in results:
        check(result.error_code, result.error_message)


def _rows(args: SimpleNamespace, user: str | None) -> list[dict[str, Any]]:
    users = None if user is None else (UserName(name=user),)
    request = DescribeUserScramCredentialsRequest(users=users)
    with connected(args) as client:
        told = client.ask(request, DescribeUserScramCredentialsResponse)
    check(told.error_code, told.error_message)
    for result in told.results:
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            raise ClusterError(f"no user {result.user!r}: `quorumlab users list` names them")
        check(result.error_code, result.error_message)
    return [
        {
            "user": result.user,
            "mechanism": _NAMES.get(info.mechanism, str(info.mechanism)),
            "iterations": info.iterations,
        }
        for result in sorted(told.results, key=lambda result: result.user)
        for info in result.credential_infos
    ]


# --- where passwords come from ----------------------------------------------------------------


def _password(args: SimpleNamespace) -> str:
    if args.password is not None:
        complain("note: other users of this machine may see a password on a command line")
        password: str = args.password
    elif args.password_file is not None:
        password = _of_file(args.password_file)
    elif sys.stdin.isatty():
        password = getpass.getpass(f"password of {args.user}: ")
        if password != getpass.getpass("again: "):
            raise UsageError("the two passwords differ: nothing is changed")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise UsageError("no password: type it, or give --password-file")
    return password


def _of_file(path: Path) -> str:
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise UsageError(f"--password-file {path}: {reason}") from error
    return lines[0] if lines else ""
