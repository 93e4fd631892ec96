"""CLUSTER_ACTION, as authorizer.class.name and super.users have it."""

import pytest

from controller.zk.zk_controller_config import Authorizer


@pytest.mark.parametrize(
    ("class_name", "super_users", "is_allowed"),
    [
        ("", "", True),
        ("some.Authorizer", "", False),
        ("some.Authorizer", "User:admin", False),
        ("some.Authorizer", "User:admin; User:ANONYMOUS", True),
    ],
)
def test_who_connects_may_act_for_the_cluster_if_a_super_user(
    class_name: str, super_users: str, is_allowed: bool
) -> None:
    assert Authorizer.of(class_name, super_users).allows_cluster_action() is is_allowed
