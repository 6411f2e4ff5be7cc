from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from core.project.only_here import find_only_here
from core.project.scan import scan_project
from core.script.analysis import ScriptReport, analyse
from core.script.find import SeveralScripts, find_script
from core.script.notebook import Notebook, parse_notebook, read_notebook
from core.script.parse import raw_tree
from core.vocabulary.errors import TandemError
from tests.core.project.making import write
from tests.core.script.notebooks import notebook
from tests.core.script.test_analysis import LOOP, MANAGED, OWN


def cells(folder: Path, *sources: str) -> Notebook:
    write(folder, {"train.ipynb": notebook(*sources)})
    return read_notebook(folder / "train.ipynb")


def read(folder: Path, *sources: str) -> ScriptReport:
    write(folder, {"train.ipynb": notebook(*sources)})
    return analyse(folder / "train.ipynb")


def test_code_cells_are_the_script_and_counted_as_jupyter_does(tmp_path: Path) -> None:
    found = cells(tmp_path, "#md A title", "import keras\n\nx = 1", "  \n", "y = 2\n").cells
    assert [(cell.number, cell.text) for cell in found] == [(1, "import keras\n\nx = 1"), (2, "y = 2")]


def test_a_cell_whose_source_is_one_text_is_read(tmp_path: Path) -> None:
    whole = json.loads(notebook("x = 1\ny = 2"))
    whole["cells"][0]["source"] = "x = 1\r\ny = 2"
    write(tmp_path, {"a.ipynb": json.dumps(whole)})
    assert read_notebook(tmp_path / "a.ipynb").cells[0].text == "x = 1\ny = 2"


@pytest.mark.parametrize(
    ("source", "text", "left_out"),
    [
        ("%matplotlib inline\nx = 1", "pass\nx = 1", ["%matplotlib inline"]),
        ("!pip install -q pandas\nx = 1", "pass\nx = 1", ["!pip install -q pandas"]),
        ("if gpu:\n    !nvidia-smi\nx", "if gpu:\n    pass\nx", ["!nvidia-smi"]),
        ("files = !ls\nx = 1", "pass\nx = 1", ["files = !ls"]),
        ("keras.Model?\nx = 1", "pass\nx = 1", ["keras.Model?"]),
        ("?keras.Model", "pass", ["?keras.Model"]),
        ("pip install pandas\nx = 1", "pass\nx = 1", ["pip install pandas"]),
        ("!echo 'it is\nx = 1", "pass\nx = 1", ["!echo 'it is"]),
        ("!echo (\nx = 1", "pass\nx = 1", ["!echo ("]),
        ("!curl a \\\n  -o b\nx = 1", "pass\n\nx = 1", ["!curl a \\"]),
        ("%time model.fit(x)", "model.fit(x)", []),
        ("%%time\nmodel.fit(x)", "\nmodel.fit(x)", []),
        ("\n%%capture out\n%ls\nx = 1", "\n\npass\nx = 1", ["%%capture out", "%ls"]),
        ("%%bash\nrm -rf $HOME", "\n", ["%%bash"]),
        ("%%writefile a.py\nx = 1", "\n", ["%%writefile a.py"]),
        ("x = (7\n  % 4)", "x = (7\n  % 4)", []),
        ('x = """\n%matplotlib inline\n!ls\n"""', 'x = """\n%matplotlib inline\n!ls\n"""', []),
        ("x = 7 \\\n% 4", "x = 7 \\\n% 4", []),
        ("# !pip install x", "# !pip install x", []),
        (
            "!a\n%b \\\n c\nx = 1\n%time y = f(\n    1)\n!d",
            "pass\npass\n\nx = 1\ny = f(\n    1)\npass",
            ["!a", "%b \\", "!d"],
        ),
    ],
)  # fmt: skip
def test_jupyter_commands_are_removed_without_moving_lines(
    tmp_path: Path, source: str, text: str, left_out: list[str]
) -> None:
    (cell,) = cells(tmp_path, source).cells
    assert (cell.text, list(cell.left_out)) == (text, left_out)
    assert cell.lines == source.count("\n") + 1


def test_a_notebook_with_fit_is_managed_and_lines_are_its_cells(tmp_path: Path) -> None:
    report = read(tmp_path, "#md Digits", "%matplotlib inline\nimport keras", "x = 1\n\nmodel.fit(x)")
    assert (report.script, report.kind) == ("train.ipynb", "managed")
    assert [(found.path, found.line) for found in report.found] == [("train.ipynb, cell 2", 3)]
    (mistake,) = report.mistakes
    assert (
        mistake.what
        == "Skipped in train.ipynb, because it only works in Jupyter: %matplotlib inline (cell 1)."
    )
    assert mistake.fix == ""


def test_a_removed_command_that_may_matter_is_reported(tmp_path: Path) -> None:
    (mistake,) = read(tmp_path, "!pip install pandas", "%cd data", "import keras\nmodel.fit(x)").mistakes
    assert "!pip install pandas (cell 1), %cd data (cell 2)" in mistake.what
    assert "before the start" in mistake.fix


def test_names_are_followed_across_cells_and_into_modules_beside_the_notebook(tmp_path: Path) -> None:
    write(tmp_path, {"mine.py": MANAGED})
    assert read(tmp_path, "import numpy", "import mine").modules == ("train.ipynb", "mine.py")
    foreign = "from sklearn.svm import SVC\nimport keras", "model = SVC()", "model.fit(x)"
    assert read(tmp_path, *foreign).kind == "neither"


def test_a_mistake_and_a_loop_are_named_with_cell_and_line(tmp_path: Path) -> None:
    broken = "import os", 'os.environ["TF_CONFIG"] = "{}"\n' + OWN
    (mistake, *_) = read(tmp_path, *broken).mistakes
    assert mistake.problem.what.startswith("train.ipynb, cell 2, line 1: TF_CONFIG")
    problem = read(tmp_path, "import numpy", LOOP).problem
    assert problem is not None and "line 4 of train.ipynb, cell 2" in problem.what


def test_a_syntax_error_is_named_with_cell_and_line(tmp_path: Path) -> None:
    with pytest.raises(TandemError) as caught:
        read(tmp_path, "%matplotlib inline", "x = 1\nprint 'a'\n")
    assert caught.value.code == "script-syntax"
    assert caught.value.what.startswith("train.ipynb, cell 2 has a syntax error in line 2:")


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("", "script-not-python", "damaged"),
        ("{}", "script-not-python", "damaged"),
        ('{"worksheets": [{"cells": []}]}', "script-not-python", "older than format 4"),
        (notebook("x <- 1", language="R"), "script-not-python", "its language is R"),
        (notebook(), "script-empty", "empty"),
        (notebook("#md Only words", "%matplotlib inline"), "script-empty", "empty"),
        (notebook("x = 1\0"), "script-not-python", "bytes that are not text"),
        (notebook("(" * 5000), "script-not-python", "train.ipynb"),
        (notebook("x = 1\n" * 400_000), "script-not-python", "its code is larger than 2 MB"),
    ],
    ids=["nothing", "no-cells", "old", "R", "no-code", "magic-alone", "zero", "deep", "huge"],
)
def test_an_unusable_notebook_is_reported(tmp_path: Path, text: str, code: str, words: str) -> None:
    write(tmp_path, {"train.ipynb": text})
    with pytest.raises(TandemError) as caught:
        analyse(tmp_path / "train.ipynb")
    assert caught.value.code in (code, "script-syntax") and caught.value.fix
    assert caught.value.code == code or "(" in text
    assert words in caught.value.what


def test_pictures_in_a_notebook_do_not_count_as_code(tmp_path: Path) -> None:
    write(tmp_path, {"train.ipynb": notebook(MANAGED, outputs=3_000_000)})
    assert analyse(tmp_path / "train.ipynb").kind == "managed"


def test_a_notebook_that_trains_is_its_folders_script(tmp_path: Path) -> None:
    write(tmp_path, {"train.ipynb": notebook(MANAGED), "mine.py": "x = 1"})
    assert find_script(tmp_path) == tmp_path / "train.ipynb"
    write(tmp_path, {"mine.py": MANAGED})
    with pytest.raises(SeveralScripts) as caught:
        find_script(tmp_path)
    assert caught.value.scripts == ("mine.py", "train.ipynb")


def test_the_notebook_itself_is_sent_and_allowed(tmp_path: Path) -> None:
    """The code that runs is in the bytes whose digest a peer's user allows."""
    write(tmp_path, {"train.ipynb": notebook(MANAGED), "data.csv": "1"})
    first = scan_project(tmp_path / "train.ipynb").manifest
    assert first.script == "train.ipynb"
    assert [file.path for file in first.files] == ["data.csv", "train.ipynb"]
    write(tmp_path, {"train.ipynb": notebook(MANAGED + "x = 1\n")})
    assert scan_project(tmp_path / "train.ipynb").manifest.digest != first.digest


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%matplotlib inline", "a Jupyter command, not Python: %matplotlib inline"),
        ("!pip install pandas", "!pip install pandas"),
        ("files = !ls", "files = !ls"),
        ("get_ipython().system('pip install pandas')", "calls get_ipython()"),
    ],
)
def test_a_jupyter_command_in_a_script_is_explained(tmp_path: Path, line: str, words: str) -> None:
    write(tmp_path, {"train.py": "import keras\n" + line + "\n" + MANAGED})
    with pytest.raises(TandemError) as caught:
        analyse(tmp_path / "train.py")
    assert caught.value.code == "script-magic"
    assert words in caught.value.what and caught.value.what.startswith("Line 2 of train.py")
    assert "notebook itself" in caught.value.fix


def test_a_script_that_checks_for_jupyter_is_accepted(tmp_path: Path) -> None:
    asks = "try:\n    get_ipython().run_line_magic('a', '')\nexcept NameError:\n    pass\n"
    write(tmp_path, {"train.py": asks + MANAGED})
    assert analyse(tmp_path / "train.py").kind == "managed"


def test_a_file_that_is_only_here_is_named_with_cell_and_line(tmp_path: Path) -> None:
    project = write(tmp_path / "project", {})
    write(tmp_path, {"elsewhere/rows.csv": "1"})
    outside = f"import pandas\n\nrows = pandas.read_csv({str(tmp_path / 'elsewhere/rows.csv')!r})"
    write(project, {"train.ipynb": notebook("x = 1", outside, MANAGED)})
    manifest = scan_project(project / "train.ipynb").manifest
    (mistake,) = find_only_here(project / "train.ipynb", manifest)
    assert (mistake.path, mistake.line) == ("train.ipynb, cell 2", 3)


def test_a_notebook_made_to_be_slow_is_read_in_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another laptop's notebook is read before it is trusted: parsing does not grow with its commands."""
    parsed: list[int] = []

    def counting(source: str, name: str) -> ast.Module:
        parsed.append(len(source))
        return raw_tree(source, name)

    monkeypatch.setattr("core.script.notebook.raw_tree", counting)
    slow = "x = 1\n" * 20_000 + "%a\nx = 1\n" * 2_000
    (cell,) = parse_notebook(notebook(slow).encode(), "slow.ipynb").cells
    assert len(cell.left_out) == len(parsed) < 2_000, "it gave up"
    assert sum(parsed) < 5_000_000
    many = "\n".join(["!pip install x"] * 2_000)
    (cell,) = parse_notebook(notebook(many).encode(), "many.ipynb").cells
    assert len(cell.left_out) == 2_000
