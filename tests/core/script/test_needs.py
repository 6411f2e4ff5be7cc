from __future__ import annotations

from pathlib import Path

import pytest

from core.script.analysis import analyse
from core.script.needs import Needs
from tests.core.project.making import write
from tests.core.script.notebooks import notebook
from tests.core.script.test_analysis import MANAGED


def needs(folder: Path, text: str, **others: str) -> Needs:
    write(folder, {"train.py": text + MANAGED, **{f"{name}.py": other for name, other in others.items()}})
    return analyse(folder / "train.py").needs


def surely(found: Needs) -> list[str]:
    return [usage.what for usage in found.surely]


def maybe(found: Needs) -> list[str]:
    return [usage.what for usage in found.maybe]


def test_modules_of_neither_python_tandem_nor_the_script_are_needed(tmp_path: Path) -> None:
    write(tmp_path, {"space/inner.py": "x = 1"})
    text = (
        "import os, json as j, numpy as np\nimport pandas as pd, sklearn.svm\nfrom PIL import Image\n"
        "import mine\nimport space.inner\nfrom . import beside\nimport tensorflow as tf\n"
        "import pandas.plotting\n"
    )
    found = needs(tmp_path, text, mine="import seaborn\nimport train\n", beside="")
    assert [(usage.path, usage.line, usage.what) for usage in found.surely] == [
        ("train.py", 2, "pandas"),
        ("train.py", 2, "sklearn"),
        ("train.py", 3, "PIL"),
        ("mine.py", 1, "seaborn"),
    ]
    assert found.maybe == ()


@pytest.mark.parametrize(
    "text",
    [
        "try:\n  import wandb\nexcept ImportError:\n  wandb = None\n",
        "try:\n  import wandb\nexcept ModuleNotFoundError as error:\n  import other\n",
        "try:\n  import wandb\nexcept (OSError, ImportError):\n  pass\n",
        "try:\n  import wandb\nexcept Exception:\n  pass\n",
        "try:\n  import wandb\nexcept:\n  pass\n",
        "import contextlib\nwith contextlib.suppress(ImportError):\n  import wandb\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  import wandb\n",
        "import mine\n",
    ],
)
def test_an_import_that_is_guarded_is_not_needed(tmp_path: Path, text: str) -> None:
    mine = "try:\n  import wandb\nexcept ImportError:\n  wandb = None\n"
    found = needs(tmp_path, text, mine=mine)
    assert found == Needs()


def test_a_module_behind_a_guarded_import_is_not_needed(tmp_path: Path) -> None:
    text = "try:\n  import mine\nexcept ImportError:\n  mine = None\n"
    assert needs(tmp_path, text, mine="import wandb\n") == Needs()


@pytest.mark.parametrize(
    "text",
    [
        "def load():\n  import wandb\n",
        "class Loader:\n  def load(self):\n    import wandb\n",
        "import sys\nif len(sys.argv) > 1:\n  import wandb\n",
        "import sys\nif len(sys.argv) > 1:\n  pass\nelse:\n  import wandb\n",
        "for name in ():\n  import wandb\n",
        "match 1:\n  case 2:\n    import wandb\n",
        "def load():\n  import mine\n",
        "import sys\nsys.path.insert(0, '../lib')\nimport wandb\n",
        "from sys import path\npath.append('../lib')\nimport wandb\n",
        "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pip', 'install', 'wandb'])\n"
        "import wandb\n",
        "import os\nos.system('pip install wandb')\nimport wandb\n",
    ],
)
def test_a_conditional_import_or_one_after_a_change_of_the_import_path_is_unsure(
    tmp_path: Path, text: str
) -> None:
    found = needs(tmp_path, text, mine="import wandb\n")
    assert (surely(found), maybe(found)) == ([], ["wandb"])


@pytest.mark.parametrize(
    "text",
    [
        "if __name__ == '__main__':\n  import wandb\n",
        "try:\n  import wandb\nfinally:\n  pass\n",
        "try:\n  import wandb\nexcept OSError:\n  pass\n",
        "with open('x') as file:\n  import wandb\n",
        "class Settings:\n  import wandb\n",
        "def load():\n  import wandb\nimport wandb\n",
    ],
)
def test_an_unconditional_import_is_needed(tmp_path: Path, text: str) -> None:
    found = needs(tmp_path, text)
    assert (surely(found), maybe(found)) == (["wandb"], [])


def test_a_notebooks_imports_are_named_by_cell_and_its_pip_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"train.ipynb": notebook("!pip install wandb", "x = 1\nimport wandb", MANAGED)})
    (usage,) = analyse(tmp_path / "train.ipynb").needs.surely
    assert (usage.path, usage.line, usage.what) == ("train.ipynb, cell 2", 2, "wandb")
