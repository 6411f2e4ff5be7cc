import shutil
import subprocess
from pathlib import Path

import pytest
from PySide6.QtGui import QImage

from app.system import desktop_files
from app.system.autostart import RESOURCES
from app.system.desktop_files import METAINFO, SIZES, files, install, remove
from core.vocabulary.errors import TandemError


@pytest.fixture(autouse=True)
def nothing_to_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)


def test_it_is_put_into_the_menu_with_icons_of_all_sizes(tmp_path: Path) -> None:
    written = install(tmp_path, "linux")
    assert all(path.stat().st_size for path in written)
    entry = (tmp_path / "applications" / "tandem.desktop").read_text()
    assert "@EXEC@" not in entry
    assert "\nExec=" in entry
    for size in SIZES:
        icon = QImage(str(tmp_path / f"icons/hicolor/{size}x{size}/apps/tandem.png"))
        assert (icon.width(), icon.height()) == (size, size)
        assert icon.pixelColor(0, 0).alpha() == 0
        assert icon.pixelColor(size // 2, size // 8).blue() > 150


def test_it_is_taken_out_again_and_nothing_else(tmp_path: Path) -> None:
    install(tmp_path, "linux")
    other = tmp_path / "applications" / "other.desktop"
    other.touch()
    assert set(remove(tmp_path, "linux")) == set(files(tmp_path))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [other]
    assert remove(tmp_path, "linux") == ()


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "applications").write_text("a file in the folder's place")
    with pytest.raises(TandemError) as failure:
        install(tmp_path, "linux")
    assert failure.value.code == "desktop-unwritable"


@pytest.mark.parametrize(("platform", "launcher"), [("win32", "Tandem.bat"), ("darwin", "Tandem.command")])
def test_elsewhere_a_launcher_is_named_that_exists(tmp_path: Path, platform: str, launcher: str) -> None:
    with pytest.raises(TandemError) as failure:
        install(tmp_path, platform)
    assert launcher in failure.value.fix
    assert (RESOURCES / "launchers" / launcher).exists()


def test_the_data_folder_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert desktop_files.data_folder() == tmp_path
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert desktop_files.data_folder() == tmp_path / ".local" / "share"


@pytest.mark.real
@pytest.mark.skipif(shutil.which("appstreamcli") is None, reason="appstreamcli is not installed")
def test_the_metainfo_is_valid() -> None:
    checked = subprocess.run(
        ["appstreamcli", "validate", "--no-net", str(RESOURCES / "desktop" / METAINFO)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.real
@pytest.mark.skipif(shutil.which("sh") is None, reason="no sh here")
def test_the_launcher_for_macos_is_a_script_that_can_run() -> None:
    launcher = RESOURCES / "launchers" / "Tandem.command"
    assert launcher.stat().st_mode & 0o111
    subprocess.run(["sh", "-n", str(launcher)], check=True, stdin=subprocess.DEVNULL, timeout=60)
