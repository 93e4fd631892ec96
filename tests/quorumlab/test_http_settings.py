"""Who may read a node's pages: what its properties mean, and which are refused."""

from base64 import b64encode
from pathlib import Path

import pytest

from quorumlab.config import ConfigError, NodeConfig, node_config
from quorumlab.http_settings import http_security, page_access_of, warning

SERVER = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:19093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093",
}


def config(**more: object) -> NodeConfig:
    given = {f"quorumlab.http.{key.replace('_', '.')}": str(each) for key, each in more.items()}
    return node_config({**SERVER, **given})


def secret_file(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_users_show_name_and_password(tmp_path: Path) -> None:
    users = secret_file(tmp_path / "users", "# of this cluster\nadmin:a:b\n\neve:x\n")
    node = config(auth="basic", users_file=users)
    security = http_security(node)
    shown = b64encode(b"admin:a:b").decode()
    assert security.is_known(f"Basic {shown}")
    assert security.is_known(f"basic {b64encode(b'eve:x').decode()}")
    for stranger in ("", shown, f"Bearer {shown}", f"Basic {b64encode(b'admin:a').decode()}"):
        assert not security.is_known(stranger), stranger
    assert "/livez" in security.open_paths
    assert "/metrics" not in security.open_paths
    assert page_access_of(node).authorization == f"Basic {shown}"
    assert shown not in repr(security) + repr(page_access_of(node))


def test_bearers_show_a_token(tmp_path: Path) -> None:
    node = config(auth="bearer", token_file=secret_file(tmp_path / "token", "t0ken\n"))
    assert http_security(node).is_known("Bearer t0ken")
    assert not http_security(node).is_known("Basic t0ken")


@pytest.mark.parametrize(
    ("way", "text", "mode", "told"),
    [
        ("digest", "a:b", 0o600, "one of none, basic, bearer"),
        ("basic", "a:b", 0o644, "others may read it: `chmod 600"),
        ("basic", "secret", 0o600, "expected NAME:PASSWORD a line"),
        ("basic", "# nobody", 0o600, "expected NAME:PASSWORD a line"),
    ],
)
def test_what_protects_nothing_is_refused(
    way: str, text: str, mode: int, told: str, tmp_path: Path
) -> None:
    users = secret_file(tmp_path / "users", text, mode)
    with pytest.raises(ConfigError) as raised:
        http_security(config(auth=way, users_file=users))
    assert told in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("users_file", ["", "/missing"])
def test_users_have_to_be_somewhere(users_file: str) -> None:
    with pytest.raises(ConfigError, match=r"quorumlab\.http\.users\.file"):
        http_security(config(auth="basic", users_file=users_file))


def test_pages_that_are_open_to_the_network_are_warned_of(tmp_path: Path) -> None:
    assert warning(config(listener="127.0.0.1:1")) is None
    assert warning(config(listener="localhost:1")) is None
    assert "auth=none" in (warning(config(listener="192.0.2.1:1")) or "")
    token = secret_file(tmp_path / "token", "t0ken")
    assert warning(config(listener=":1", auth="bearer", token_file=token)) is None
