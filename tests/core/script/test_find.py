import os
from pathlib import Path

import pytest

from core.script.find import find_script
from core.vocabulary.errors import TandemError
from tests.core.project.making import write
from tests.core.script.test_analysis import LOOP, MANAGED, OWN


def refusal(path: Path) -> TandemError:
    with pytest.raises(TandemError) as caught:
        find_script(path)
    assert caught.value.fix
    return caught.value


def test_a_file_is_itself(tmp_path: Path) -> None:
    write(tmp_path, {"real.py": "x"})
    (tmp_path / "link.py").symlink_to("real.py")
    assert find_script(tmp_path / "real.py") == (tmp_path / "real.py").resolve()
    assert find_script(tmp_path / "link.py") == (tmp_path / "real.py").resolve()


@pytest.mark.parametrize(
    "files",
    [
        {"train.py": "print(1)"},
        {
            "train.py": "x = (",
            "setup.py": MANAGED,
            "__init__.py": "",
            "test_it.py": MANAGED,
            ".x.py": MANAGED,
        },
        {"train.py": MANAGED, "plot.py": "import matplotlib", "broken.py": "x = ("},
        {"train.py": OWN, "other.py": LOOP},
        {"train.py": "import helper\nhelper.go()", "helper.py": MANAGED},
        {"train.py": "from lib import helper", "helper.py": "import lib", "lib/helper.py": MANAGED},
    ],
)
def test_the_one_script_of_a_folder_is_found(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, dict(files))
    assert find_script(tmp_path) == tmp_path.resolve() / "train.py"


def test_several_scripts_are_listed_to_choose_from(tmp_path: Path) -> None:
    write(tmp_path, {"b.py": MANAGED, "a.py": OWN, "plot.py": "x = 1"})
    error = refusal(tmp_path)
    assert error.code == "script-ambiguous"
    assert "2 training scripts: a.py, b.py" in error.what


@pytest.mark.parametrize("files", [{"readme.md": "x"}, {"a.py": "x = 1", "b.py": "y = 2"}])
def test_a_folder_without_a_script_is_reported(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, dict(files))
    assert refusal(tmp_path).code == "script-not-in-folder"


def test_a_near_name_is_suggested(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": "x"})
    assert refusal(tmp_path / "trian.py").fix == "Did you mean train.py?"
    assert refusal(tmp_path / "nowhere" / "x.py").code == "script-missing"
    assert refusal(tmp_path / "a\0b.py").code == "script-missing"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    assert refusal(tmp_path / "pipe.py").code == "script-unreadable"
    assert refusal(tmp_path).code == "script-not-in-folder"
