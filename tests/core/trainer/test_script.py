"""Scripts run as in Python, without TensorFlow: each in a small separate process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.script.notebooks import notebook

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[3]

RUN = """
import sys
from pathlib import Path
from core.trainer import script
script.hide_tandem()
try:
    script.run(Path(sys.argv[1]), sys.argv[2:])
finally:
    script.run_exit_functions()
    sys.stdout.flush()
"""


def run(folder: Path, text: str, *arguments: str, name: str = "train.py") -> subprocess.CompletedProcess[str]:
    (folder / name).write_text(text)
    return subprocess.run(
        [sys.executable, "-c", RUN, str(folder / name), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def said(folder: Path, text: str, *arguments: str) -> str:
    done = run(folder, text, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_name_file_arguments_folder_and_path_are_as_python_sets_them(tmp_path: Path) -> None:
    text = "import os, sys\nprint(__name__, __file__, sys.argv, os.getcwd(), sys.path[0], __spec__, sep='|')"
    path = tmp_path / "train.py"
    assert said(tmp_path, text, "--a", "b c") == (
        f"__main__|{path}|['{path}', '--a', 'b c']|{tmp_path}|{tmp_path}|None\n"
    )


def test_packages_with_our_names_are_the_scripts(tmp_path: Path) -> None:
    for name in ("app", "core"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("whose = 'theirs'\n")
    (tmp_path / "core/trainer.py").write_text("deep = 'theirs, too'\n")
    (tmp_path / "resources").mkdir()  # Without an __init__: a namespace package.
    (tmp_path / "resources/words.py").write_text("found = 'in a namespace'\n")
    text = (
        "import app, core, core.trainer\nfrom resources.words import found\n"
        "print(app.whose, core.whose, core.trainer.deep, found, sep='|')"
    )
    assert said(tmp_path, text) == "theirs|theirs|theirs, too|in a namespace\n"


@pytest.mark.parametrize("name", ["app", "core", "resources", "core.vocabulary.trainer_messages"])
def test_tandems_packages_are_hidden_from_a_script(tmp_path: Path, name: str) -> None:
    text = f"try:\n    import {name}\nexcept ModuleNotFoundError as error:\n    print(error)"
    assert said(tmp_path, text) == f"No module named {name.partition('.')[0]!r}\n"


def test_everything_else_is_imported_as_always(tmp_path: Path) -> None:
    (tmp_path / "apples.py").write_text("x = 1\n")
    assert said(tmp_path, "import apples, msgspec, numpy, json\nprint(apples.x)") == "1\n"


def test_what_the_script_defines_can_be_pickled_and_started_as_a_process(tmp_path: Path) -> None:
    text = (
        "import multiprocessing, pickle\n"
        "def double(x):\n    return 2 * x\n"
        "if __name__ == '__main__':\n"
        "    print(pickle.loads(pickle.dumps(double)) is double)\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(double, [1, 2]))\n"
    )
    assert said(tmp_path, text) == "True\n[2, 4]\n"


def test_threads_and_exit_functions_of_the_script_finish(tmp_path: Path) -> None:
    text = (
        "import atexit, threading\n"
        "go = threading.Event()\n"
        "def later():\n    go.wait()\n    print('thread')\n"
        "threading.Thread(target=later).start()\n"
        "atexit.register(print, 'exit function')\n"
        "print('main')\n"
        "go.set()\n"
    )
    assert said(tmp_path, text) == "main\nthread\nexit function\n"


def test_an_encoding_that_the_script_names_is_used(tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\nprint(ascii('\xe4'))\n")
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "latin.py")], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout == "'\\xe4'\n"


def test_tandems_future_imports_do_not_apply_to_the_script(tmp_path: Path) -> None:
    assert said(tmp_path, "def f(x: int): pass\nprint(f.__annotations__)") == "{'x': <class 'int'>}\n"


def test_a_frozen_program_keeps_the_folder_that_holds_every_package(tmp_path: Path) -> None:
    frozen = RUN.replace("script.hide_tandem()", "sys.frozen = True\nscript.hide_tandem()")
    text = "import sys\ntry:\n    import core\nexcept ModuleNotFoundError:\n    print(sys.path)"
    (tmp_path / "train.py").write_text(text)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.path[0] = " + repr(str(ROOT)) + frozen,
            tmp_path / "train.py",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert repr(str(ROOT)) in done.stdout


def run_cells(folder: Path, *cells: str) -> subprocess.CompletedProcess[str]:
    return run(folder, notebook(*cells), name="train.ipynb")


def test_a_notebooks_cells_are_one_script(tmp_path: Path) -> None:
    done = run_cells(
        tmp_path,
        "#md A title",
        "from __future__ import annotations\n%matplotlib inline\nimport os, sys",
        "!pip install pandas\ndef f(x: Undefined): return x + 1",
        "print(__name__, os.getcwd(), sys.argv, f(1), '__file__' in globals())\ndisplay(f)",
    )
    assert done.returncode == 0, done.stderr
    told = f"__main__ {tmp_path} ['{tmp_path}/train.ipynb'] 2 False\n"
    assert done.stdout.startswith(told + "<function f at ")


def test_an_error_in_a_notebook_shows_its_cell_and_its_line(tmp_path: Path) -> None:
    tries = "import traceback\ntry:\n    f()\nexcept ZeroDivisionError:\n    traceback.print_exc()"
    done = run_cells(tmp_path, "x = 1", "def f():\n    return 1 / 0", tries)
    assert f'File "{tmp_path}/train.ipynb, cell 3", line 3, in <module>\n    f()\n' in done.stderr
    assert f'File "{tmp_path}/train.ipynb, cell 2", line 2, in f\n    return 1 / 0\n' in done.stderr


def test_the_source_of_a_notebooks_function_can_be_read(tmp_path: Path) -> None:
    """AutoGraph does: without it, an ``if`` on a tensor fails in a ``tf.function``."""
    done = run_cells(tmp_path, "def f():\n    return 1", "import inspect\nprint(inspect.getsource(f))")
    assert done.stdout == "def f():\n    return 1\n", done.stderr
