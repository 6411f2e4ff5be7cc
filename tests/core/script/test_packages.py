from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest

from core.script import packages
from tests.core.project.making import write


def test_modules_that_no_script_would_find_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    write(tmp_path, {"found_here.py": "raise RuntimeError('never imported')", "space_here/a.py": ""})
    names = ("msgspec", "found_here", "space_here", "surely_nowhere", "another_nowhere")
    assert packages.missing(names) == ("surely_nowhere", "another_nowhere")
    assert "found_here" not in sys.modules
    write(tmp_path, {"surely_nowhere.py": ""})
    assert packages.missing(names) == ("another_nowhere",), "what was installed meanwhile is seen"


@pytest.mark.parametrize("name", ["app", "core", "resources"])
def test_tandems_own_packages_are_hidden_from_scripts(name: str) -> None:
    assert packages.missing((name,)) == (name,)


def test_a_requirement_has_the_name_of_its_distribution() -> None:
    assert packages.requirement("sklearn") == "scikit-learn" or "==" in packages.requirement("sklearn")
    assert packages.requirement("surely_nowhere") == "surely-nowhere"
    assert packages.requirement("msgspec").startswith("msgspec==")
    assert packages.requirement("yaml").lower().startswith("pyyaml==")


def test_a_package_in_a_folder_of_this_laptop_has_no_requirement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    write(
        tmp_path,
        {
            "on_the_path_only.py": "",
            "mine.py": "",
            "mine-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n",
            "mine-1.0.dist-info/top_level.txt": "mine\n",
            "mine-1.0.dist-info/direct_url.json": '{"url": "file:///home/anna/mine", "dir_info": {}}',
        },
    )
    assert packages.requirement("on_the_path_only") == ""
    assert packages.requirement("mine") == ""


def test_the_installer_is_that_of_this_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sys.executable in packages.installer() and "pip install" in packages.installer()
    monkeypatch.setattr(sys, "prefix", "/home/anna/.local/share/pipx/venvs/tandem-laptops")
    assert packages.installer() == "pipx inject tandem-laptops"
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    assert not packages.installer().endswith("--break-system-packages")
    (tmp_path / "EXTERNALLY-MANAGED").touch()
    assert packages.installer().endswith("pip install --break-system-packages")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert packages.installer() == ""
