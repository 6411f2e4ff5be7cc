"""What another laptop's script may ask for here, and what it never gets."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core.vocabulary.access import Access, Grant, least
from core.vocabulary.errors import TandemError
from core.vocabulary.text import spelled
from core.walls import grants

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no walls")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path.resolve() / "home"
    for folder in ("Pictures/2026", ".ssh", "stuff/tandem/identity", "bin", "snap/firefox"):
        (found / folder).mkdir(parents=True)
    (found / "stuff/tandem/identity/key.pem").write_text("key")
    monkeypatch.setenv("HOME", str(found))
    monkeypatch.setenv("PATH", f"{found / 'bin'}:/usr/bin")
    monkeypatch.setattr(sys, "path", ["/opt/x/lib/python"])
    return found


def find(home: Path, path: str, *, write: bool = False) -> Grant:
    (found,) = grants.find((Access(path=path, write=write),), home / "own-tandem")
    return found


def test_a_folder_of_the_user_or_another_disk_is_granted_at_its_real_path(home: Path) -> None:
    (home / "photos").symlink_to(home / "Pictures")
    assert find(home, "~/photos/2026") == Grant(asked="~/photos/2026", path=str(home / "Pictures/2026"))
    assert find(home, "/mnt/data", write=True) == Grant(asked="/mnt/data", path="/mnt/data", write=True)


def test_missing_paths_are_treated_like_existing_ones(home: Path) -> None:
    assert find(home, "~/Pictures/nothing").path == str(home / "Pictures/nothing")


@pytest.mark.parametrize(
    "path",
    [
        *("~/.ssh", "~/.ssh/id_ed25519", "~/.gnupg", "~/.config/gh", "~/link/id_ed25519", "/mnt/.hidden/x"),
        *(
            "~/",
            "/",
            "~//mnt/x",
            "/home",
            "/root",
            "~/Pictures/..",
            "/home/../etc",
            "~/own-tandem",
            "~/own-tandem/runs",
            "~/stuff/tandem",
        ),
        *(
            "~/stuff/tandem/runs/x",
            "/proc",
            "/proc/1/environ",
            "/sys",
            "/dev/sda",
            "/run/user",
            "~/snap/firefox",
        ),
        *("", "Pictures", "../x", "/mnt/x\0y"),
    ],
)
def test_invariant_keys_and_programs_data_are_opened_to_nobody(home: Path, path: str) -> None:
    (home / "link").symlink_to(home / ".ssh")
    with pytest.raises(TandemError) as refused:
        find(home, path)
    assert refused.value.code == "never-opened" and spelled(path) in refused.value.what


@pytest.mark.parametrize("path", ["/usr/share", "/etc", "~/bin", "/var", "/opt/x/lib"])
def test_folders_with_programs_are_never_writable(home: Path, path: str) -> None:
    with pytest.raises(TandemError, match="never change"):
        find(home, path, write=True)


def test_a_home_below_a_hidden_folder_is_not_hidden_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path.resolve() / ".users/ben"))
    assert find(tmp_path, "~/Pictures").path.endswith("/.users/ben/Pictures")


def test_equal_sets_of_folders_look_the_same() -> None:
    assert least(("/b", "/a/x", "/a", "/b")) == ("/a", "/b")
    assert least(("/a", "/b/x"), but=("/b",)) == ("/a",)
