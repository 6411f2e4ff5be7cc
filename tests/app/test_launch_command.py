import re
import sys
from pathlib import Path

import pytest

from app.launch_command import exec_value, window_command


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
