"""The doctor's findings about the home."""

import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from core.doctor import files
from core.doctor.files import mend
from core.doctor.view import Examined
from core.home import identity
from core.home.home import Home
from core.vocabulary.errors import TandemError
from tests.core.doctor.views import view


def test_a_sound_home_is_fine(tmp_path: Path) -> None:
    seen = view(tmp_path, port=None)

    assert files.check_home(seen).level == "ok"
    assert files.check_socket(seen).level == "ok"


def test_a_home_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    finding = files.check_home(Examined(Home(tmp_path / "file" / "home")))

    assert (finding.level, finding.code) == ("error", "home-unusable")
    assert finding.fix


@pytest.mark.parametrize(("free", "level"), [(100 << 30, "ok"), (1 << 30, "warning"), (100 << 20, "error")])
def test_little_space_is_reported_in_time(tmp_path: Path, free: int, level: str) -> None:
    asked: list[Path] = []

    def usage(path: Path) -> SimpleNamespace:
        asked.append(path)
        return SimpleNamespace(free=free)

    assert files.check_disk(Examined(Home(tmp_path / "not" / "yet")), usage).level == level
    assert asked == [tmp_path]


def test_no_key_yet_is_no_fault(tmp_path: Path) -> None:
    assert files.check_key(view(tmp_path)).level == "note"


def test_a_key_that_others_can_read_can_be_mended(tmp_path: Path) -> None:
    seen = view(tmp_path)
    key = identity.load_or_create(seen.home.identity).key_path
    assert files.check_key(seen).level == "ok"

    for path, mode in ((key, 0o640), (seen.home.identity, 0o755)):
        path.chmod(mode)
        finding = files.check_key(seen)
        assert (finding.level, finding.code, finding.mend) == ("error", "key-mode", True)
        assert str(path) in finding.what
        path.chmod(0o600 if path is key else 0o700)


def test_a_key_of_another_user_cannot_be_mended_by_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = view(tmp_path)
    owner = identity.load_or_create(seen.home.identity).key_path.stat().st_uid
    monkeypatch.setattr("core.doctor.files.os.geteuid", lambda: owner + 1)

    finding = files.check_key(seen)

    assert (finding.code, finding.mend) == ("key-owner", False)


def test_a_deleted_socket_can_be_made_again_and_a_left_one_does_no_harm(tmp_path: Path) -> None:
    running, silent = view(tmp_path), view(tmp_path, port=None)

    finding = files.check_socket(running)
    assert (finding.code, finding.mend) == ("socket-gone", True)

    running.home.socket.write_bytes(b"")
    assert files.check_socket(running).level == "ok"
    assert files.check_socket(silent).code == "socket-left"


def test_a_mended_key_lets_the_node_start_again(tmp_path: Path) -> None:
    seen = view(tmp_path, port=None)
    mine = identity.load_or_create(seen.home.identity)
    mine.key_path.chmod(0o644)
    seen.home.identity.chmod(0o777)
    with pytest.raises(TandemError):
        identity.load_or_create(seen.home.identity)

    mend(seen.home, "key-mode")

    assert identity.load_or_create(seen.home.identity) == mine
    assert files.check_key(seen).level == "ok"


def test_a_link_in_the_keys_place_is_not_followed(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.identity.mkdir(parents=True)
    other = tmp_path / "other"
    other.write_text("")
    other.chmod(0o644)
    (home.identity / "key.pem").symlink_to(other)

    mend(home, "key-mode")

    assert stat.S_IMODE(other.stat().st_mode) == 0o644


def test_a_finding_that_cannot_be_mended_is_refused_with_a_reason(tmp_path: Path) -> None:
    for home, code, expected in (
        (Home(tmp_path), "not-sealed", "no-such-mend"),
        (Home(tmp_path / "missing"), "key-mode", "mend-failed"),
    ):
        with pytest.raises(TandemError) as failure:
            mend(home, code)
        assert failure.value.code == expected
        assert failure.value.fix
