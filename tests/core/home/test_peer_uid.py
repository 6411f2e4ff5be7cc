"""The system says who is at the other end of a socket."""

import os
import socket

import pytest

from core.home.peer_uid import peer_uid, same_user


def test_both_ends_of_a_pair_are_this_user() -> None:
    one, two = socket.socketpair(socket.AF_UNIX)
    with one, two:
        assert peer_uid(one) == os.geteuid()
        assert same_user(two)


def test_another_user_is_not_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = socket.socketpair(socket.AF_UNIX)
    with one, two:
        stranger = os.geteuid() + 1
        monkeypatch.setattr("core.home.peer_uid.os.geteuid", lambda: stranger)
        assert not same_user(one)
