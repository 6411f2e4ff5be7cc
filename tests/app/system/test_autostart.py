import re
import sys
from pathlib import Path

import pytest

from app.system.autostart import exec_value, set_start, window_command
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


def test_a_frozen_program_starts_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert window_command() == [sys.executable]


def test_an_installed_one_starts_its_script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert window_command() == [str(tmp_path / "python"), "-m", "tandem_laptops"]
    name = "tandem-gui.exe" if sys.platform == "win32" else "tandem-gui"
    (tmp_path / name).touch()
    assert window_command() == [str(tmp_path / name)]


@pytest.mark.parametrize("path", ["/opt/tandem/bin/tandem-gui", "/home/o'neil/my apps/t", '/a "b" $c `d`/t'])
def test_a_path_survives_the_desktop_entrys_quoting(path: str) -> None:
    value = exec_value([path, "-m", "app"])
    string = value.replace("\\\\", "\\")  # the value's own escapes are undone first
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', string)
    undone = [re.sub(r'\\(["`$\\])', r"\1", quoted) or bare for quoted, bare in parts]
    assert undone == [path, "-m", "app"]


def test_a_percent_sign_is_no_field_code() -> None:
    assert exec_value(["/x/100%/t"]) == "/x/100%%/t"
