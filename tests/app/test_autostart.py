from pathlib import Path

import pytest

from app.autostart import set_start
from core.vocabulary.errors import TandemError


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config"


def test_on_linux_an_autostart_entry_comes_and_goes(config: Path) -> None:
    entry = config / "autostart" / "tandem.desktop"
    set_start(True, "linux")
    assert "\nExec=" in entry.read_text()
    set_start(True, "linux")
    set_start(False, "linux")
    assert not entry.exists()
    set_start(False, "linux")


def test_without_a_place_of_its_own_it_goes_to_the_users_config(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    set_start(True, "linux")
    assert (tmp_path / ".config" / "autostart" / "tandem.desktop").exists()


@pytest.mark.parametrize(("platform", "word"), [("win32", "Windows"), ("darwin", "macOS")])
def test_elsewhere_it_says_how_to_do_it_by_hand(config: Path, platform: str, word: str) -> None:
    with pytest.raises(TandemError) as failure:
        set_start(True, platform)
    assert word in failure.value.what
    assert failure.value.fix
    set_start(False, platform)
    assert not config.exists()


def test_a_folder_that_cannot_be_made_is_said(config: Path) -> None:
    config.write_text("a file stands where the folder should be")
    with pytest.raises(TandemError) as failure:
        set_start(True, "linux")
    assert failure.value.code == "autostart-unwritable"
