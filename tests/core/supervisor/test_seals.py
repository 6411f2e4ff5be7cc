from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core.supervisor import seals

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")


@pytest.mark.parametrize(
    ("name", "value", "words", "mend"),
    [
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "AppArmor",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("kernel/unprivileged_userns_clone", "0", "switched off", "kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "switched off", "user.max_user_namespaces"),
    ],
)
def test_namespaces_that_are_switched_off_are_told_apart_and_mended(
    tmp_path: Path, name: str, value: str, words: str, mend: str
) -> None:
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(value + "\n")
    assert words in seals.why_none(tmp_path)
    assert mend in seals.how_to_allow(tmp_path)


@pytest.mark.parametrize(
    ("ends", "why"),
    [("exit 0", ""), ("exit 1", "user namespaces are not allowed here"), ("missing", "not allowed here")],
)
def test_whether_namespaces_are_allowed_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str, why: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if ends != "missing":
        (tmp_path / "unshare").write_text(f"#!/bin/sh\necho said; {ends}\n")
        (tmp_path / "unshare").chmod(0o700)

    assert seals.why_none(tmp_path).endswith(why)
    assert bool(seals.why_none(tmp_path)) is bool(why)


def test_an_unshare_that_cannot_run_allows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("exec format error")

    monkeypatch.setattr("shutil.which", lambda _: "/bin/unshare")
    monkeypatch.setattr("subprocess.run", broken)

    assert "not allowed here" in seals.why_none(tmp_path)


@pytest.mark.parametrize(("machine", "found"), [("x86_64", "loopback"), ("aarch64", "")])
def test_where_there_are_none_the_loopback_is_what_is_left_on_some_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, found: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert seals.find() == found
