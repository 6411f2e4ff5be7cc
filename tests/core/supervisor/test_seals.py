from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from core.supervisor import seals, spawn

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
APPARMOR = "kernel/apparmor_restrict_unprivileged_userns"


def switch(proc: Path, name: str, value: str) -> None:
    (proc / name).parent.mkdir(parents=True)
    (proc / name).write_text(value + "\n")


@pytest.mark.parametrize(
    ("name", "value", "words", "mend"),
    [
        (APPARMOR, "1", "AppArmor", "apparmor_parser -r /etc/apparmor.d/tandem"),
        ("kernel/unprivileged_userns_clone", "0", "switched off", "kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "switched off", "user.max_user_namespaces"),
    ],
)
def test_switched_off_namespaces_are_told_apart_each_with_its_fix(
    tmp_path: Path, name: str, value: str, words: str, mend: str
) -> None:
    switch(tmp_path, name, value)
    assert words in seals.why_none(tmp_path, lambda: False)
    assert mend in seals.how_to_allow(tmp_path)


def test_a_namespace_that_works_counts_whatever_the_settings_say(tmp_path: Path) -> None:
    """For example with an AppArmor profile for Tandem's Python, or for an administrator."""
    switch(tmp_path, APPARMOR, "1")
    assert seals.why_none(tmp_path, lambda: True) == ""


def test_a_system_that_refuses_without_a_reason_is_said_to_refuse(tmp_path: Path) -> None:
    switch(tmp_path, APPARMOR, "0")
    assert seals.why_none(tmp_path, lambda: False) == "user namespaces are not allowed here"


@pytest.mark.parametrize(("status", "can"), [(0, True), (1, False)])
def test_namespaces_are_allowed_if_a_trial_succeeds(
    monkeypatch: pytest.MonkeyPatch, status: int, can: bool
) -> None:
    ends = [sys.executable, "-I", "-S", "-c", f"raise SystemExit({status})"]
    monkeypatch.setattr(seals, "trial", lambda: ends)
    assert seals.can_enter() is can


def test_a_trial_that_cannot_run_or_does_not_end_allows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "trial", lambda: ["/nowhere/python"])
    assert not seals.can_enter()
    monkeypatch.setattr(seals, "trial", lambda: [sys.executable, "-c", "import time; time.sleep(1000)"])
    assert not seals.can_enter(0.2)


def test_the_program_that_is_to_be_sealed_is_the_one_that_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """AppArmor allows namespaces by program: ``unshare`` may have what Tandem's Python may not, and vice
    versa."""
    assert seals.trial()[0] == sys.executable and "namespace.enter()" in seals.trial()[-1]
    monkeypatch.setattr(seals, "is_frozen", lambda: True)
    monkeypatch.setattr(spawn, "is_frozen", lambda: True)
    assert seals.trial() == [sys.executable, spawn.SEAL_ARGUMENT]


LOOK = "import os; print(os.readlink('/proc/self/ns/net'), open('/proc/net/dev').read().count(':'))"


def tried(before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """The trial, which then reports where it is."""
    *python, code = seals.trial()
    return subprocess.run([*before, *python, f"{code}; {LOOK}"], capture_output=True, text=True, timeout=60)


@pytest.mark.real
@pytest.mark.skipif(bool(seals.why_none()), reason=seals.why_none() or "namespaces are here")
def test_the_trial_really_enters_a_network_of_its_own() -> None:
    done = tried()
    assert done.returncode == 0, done.stderr
    network, devices = done.stdout.split()
    assert network != str(Path("/proc/self/ns/net").readlink())
    assert int(devices) >= 1
    assert seals.find() == "namespace"


@pytest.mark.real
def test_the_trial_fails_if_the_system_call_is_forbidden() -> None:
    done = tried([sys.executable, "-m", "tests.forbidden"])
    assert done.returncode != 0 and "PermissionError" in done.stderr


def test_without_namespaces_there_is_no_seal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "trial", lambda: ["/nowhere/python"])
    assert seals.why_none()
    assert seals.find() == ""


def test_the_profile_names_the_python_that_a_link_leads_to(tmp_path: Path) -> None:
    """As in a virtual environment: AppArmor checks the target file."""
    (tmp_path / "python3.13").touch()
    (tmp_path / "python").symlink_to("python3.13")
    text = seals.profile(str(tmp_path / "python"))
    assert f'profile tandem "{tmp_path / "python3.13"}" flags=(unconfined) {{\n  userns,\n}}\n' in text


def test_the_profile_takes_every_character_of_a_path_for_itself() -> None:
    """AppArmor's paths are patterns, even in quotes."""
    text = seals.profile('/opt/a b/{x}/[y]*?^/"quoted"/back\\slash/python, 3.11')
    path = r"/opt/a b/\{x\}/\[y\]\*\?\^/\"quoted\"/back\\slash/python, 3.11"
    assert f'profile tandem "{path}" flags=(unconfined) {{\n' in text


def test_the_command_that_is_shown_writes_that_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "profile", partial(seals.profile, '/it\'s/100% "a{b}\\c"/python'))
    switch(tmp_path, APPARMOR, "1")
    command = seals.how_to_allow(tmp_path).partition("check again: ")[2].partition(" | sudo tee ")[0]
    assert command.startswith("printf ")
    written = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, timeout=60)
    assert written.stdout == seals.profile()
