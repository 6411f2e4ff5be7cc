"""Plots shown by scripts, in small separate processes. A package with the same calls replaces matplotlib,
so that the tests need neither it nor its eight dependencies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.project.making import write
from tests.core.script.notebooks import notebook

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[3]

RUN = """
import sys
from pathlib import Path
from core.trainer import plots, script
path = Path(sys.argv[1])
shown = plots.Plots(path.parent, path.stem, lambda words: print("said:", words))
shown.install()
script.hide_tandem()
script.run(path, [], after_cell=shown.save)
"""
PYPLOT = """
_open, _backend, called = {}, "agg", []
class Figure:
    def __init__(self, number): self.number, self.drawn = number, ""
    def savefig(self, path, **how):
        with open(path, "w") as file: file.write(self.drawn)
def get_backend(): return _backend
def get_fignums(): return sorted(_open)
def figure(number=None):
    number = number or max(_open, default=0) + 1
    return _open.setdefault(number, Figure(number))
def plot(what): figure(max(_open, default=1)).drawn += what
def close(which): _open.clear()
def show(*args, **kwargs): called.append("show")
"""


def run(folder: Path, script: str, text: str) -> subprocess.CompletedProcess[str]:
    package = {"matplotlib/__init__.py": "", "matplotlib/pyplot.py": PYPLOT}
    write(folder, {script: text, **package})
    return subprocess.run(
        [sys.executable, "-c", RUN, str(folder / script)], cwd=ROOT, capture_output=True, text=True
    )


def drawn(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("*.png")}


def test_plots_that_a_script_shows_are_saved_beside_it(tmp_path: Path) -> None:
    text = (
        "import matplotlib.pyplot as plt\nplt.plot('a')\nplt.plot('b')\nplt.show()\n"
        "plt.figure()\nplt.plot('c')\nplt.figure()\nplt.plot('d')\nplt.show()\nplt.plot('never shown')\n"
    )
    done = run(tmp_path, "train.py", text)
    assert done.returncode == 0, done.stderr
    assert drawn(tmp_path) == {
        "train-plot-1.png": "ab",
        "train-plot-2.png": "c",
        "train-plot-3.png": "d",
    }
    assert (
        done.stdout == "said: Plots that the script shows are saved beside it: train-plot-1.png and so on.\n"
    )


def test_a_notebook_shows_at_the_end_of_each_cell(tmp_path: Path) -> None:
    text = notebook(
        "%matplotlib inline\nfrom matplotlib import pyplot as plt",
        "plt.plot('a')\nplt.show()\nplt.plot('b')",
        "plt.plot('c')",
        "x = 1",
    )
    done = run(tmp_path, "train.ipynb", text)
    assert done.returncode == 0, done.stderr
    assert drawn(tmp_path) == {
        "train-plot-1.png": "a",
        "train-plot-2.png": "b",
        "train-plot-3.png": "c",
    }


def test_a_backend_with_a_screen_still_shows_plots(tmp_path: Path) -> None:
    text = "import matplotlib.pyplot as plt\nplt._backend = 'TkAgg'\nplt.plot('a')\nplt.show()\n"
    text += "print(plt.called)"
    done = run(tmp_path, "train.py", text)
    assert (done.stdout, drawn(tmp_path)) == ("['show']\n", {}), done.stderr


def test_a_plot_that_cannot_be_saved_ends_no_training(tmp_path: Path) -> None:
    (tmp_path / "train-plot-1.png").mkdir()
    text = "import matplotlib.pyplot as plt\nplt.plot('a')\nplt.show()\nprint('goes on')"
    done = run(tmp_path, "train.py", text)
    assert done.stdout.startswith("said: A plot could not be saved: [Errno 21] Is a directory")
    assert done.stdout.endswith("goes on\n")
