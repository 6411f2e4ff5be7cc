"""A home is one user's private folder, never somebody else's."""

import stat
from pathlib import Path

import pytest

from core.home import home as homes
from core.home.home import Home
from core.vocabulary.errors import TandemError


def refusal(folder: Path) -> TandemError:
    with pytest.raises(TandemError) as failure:
        homes.prepare(Home(folder))
    assert failure.value.fix
    return failure.value


def test_the_option_goes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_HOME", str(tmp_path / "environment"))

    assert homes.choose(tmp_path / "option").folder == tmp_path / "option"
    assert homes.choose().folder == tmp_path / "environment"


def test_without_either_it_is_the_platforms_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TANDEM_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    assert homes.choose().folder.name == "tandem"


def test_a_name_that_no_system_takes_is_refused() -> None:
    with pytest.raises(TandemError) as failure:
        homes.choose("a\0b")
    assert failure.value.code == "home-unusable"


def test_a_new_home_is_closed_to_others(tmp_path: Path) -> None:
    home = Home(tmp_path / "deep" / "home")

    homes.prepare(home)

    for folder in (home.folder, home.logs, home.runs, home.projects):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_an_empty_folder_becomes_a_home(tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir(mode=0o755)

    homes.prepare(Home(folder))

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_an_opened_home_is_closed_again(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    homes.prepare(home)
    home.folder.chmod(0o755)

    homes.prepare(home)

    assert stat.S_IMODE(home.folder.stat().st_mode) == 0o700


def test_a_folder_with_other_things_is_left_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir(mode=0o755)
    (folder / "letter.txt").write_text("dear")

    assert refusal(folder).code == "home-not-empty"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert [entry.name for entry in folder.iterdir()] == ["letter.txt"]


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    failure = refusal(tmp_path / "file" / "home")

    assert failure.code == "home-unusable"
    assert str(tmp_path / "file" / "home") in failure.what


def test_a_home_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "home"
    homes.prepare(Home(folder))
    owner = folder.stat().st_uid
    monkeypatch.setattr("core.home.home.os.geteuid", lambda: owner + 1)

    assert refusal(folder).code == "home-wrong-owner"


def test_everything_in_a_home_has_its_own_name(tmp_path: Path) -> None:
    home = Home(tmp_path)
    places = {
        home.identity: "identity",
        home.trust: "trust.json",
        home.settings: "settings.json",
        home.logs: "logs",
        home.runs: "runs",
        home.projects: "projects",
        home.lock: "node.lock",
        home.socket: "node.sock",
        home.loopback: "node.port",
    }
    assert {place: place.relative_to(tmp_path).as_posix() for place in places} == places
