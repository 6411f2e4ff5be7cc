"""A script's actions beyond computing, according to its text."""

from __future__ import annotations

import pytest

from core.script.deeds import MOST, MOST_CHARACTERS, deeds
from core.vocabulary.answers import Deed


@pytest.mark.parametrize(
    ("source", "kind", "what", "marked"),
    [
        ("open('a.csv')", "reads", "a.csv", False),
        ("name = 'a.csv'\nimport pandas as pd; pd.read_csv(name)", "reads", "a.csv", False),
        ("import numpy as np; np.load(folder / 'x.npz')", "reads", "folder / 'x.npz'", False),
        ("from pathlib import Path; Path('../x').read_text()", "reads", "../x", True),
        ("from pathlib import Path; open(Path(__file__).with_name('a.csv'))", "reads", "a.csv", False),
        ("here = Path(__file__).resolve().parent / 'a.csv'; open(here)", "reads", "a.csv", False),
        ("open(Path(__file__).parent / '../a.csv')", "reads", "../a.csv", True),
        (
            "import os; open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'a.csv'))",
            *("reads", "a.csv", False),
        ),
        ("open('/etc/passwd')", "reads", "/etc/passwd", True),
        ("open('~/.ssh/id_ed25519')", "reads", "~/.ssh/id_ed25519", True),
        ("import os; os.environ['TOKEN']", "reads", "environment variables", True),
        ("import os; os.getenv('TOKEN')", "reads", "environment variables", True),
        ("open('out.txt', 'w')", "writes", "out.txt", False),
        ("model.save('m.keras')", "writes", "m.keras", False),
        ("import shutil; shutil.rmtree('data')", "writes", "rmtree data", True),
        ("import requests; requests.get('http://a.b')", "downloads", "http://a.b", True),
        ("import keras; keras.datasets.mnist.load_data()", "downloads", "keras.datasets.mnist", False),
        ("from keras.applications import VGG16; VGG16()", "downloads", "keras.applications.VGG16", False),
        ("import subprocess as s; s.run(['curl', 'x'])", "starts", "subprocess.run curl", True),
        ("import os; os.system('rm -r /')", "starts", "os.system rm -r /", True),
        ("exec(text)", "starts", "exec text", True),
        ("import pickle; pickle.load(file)", "starts", "pickle.load file", True),
    ],
)
def test_each_deed_is_found_by_its_text(source: str, kind: str, what: str, marked: bool) -> None:
    line = source.count("\n") + 1
    assert deeds("a.py", source) == (Deed(kind=kind, what=what, line=line, marked=marked),)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "source",
    [
        "import os; os.environ['TF_CPP_MIN_LOG_LEVEL'] = '2'",
        "from keras.applications import VGG16; VGG16(weights=None)",
        "model.fit(x); model.compile('adam'); print('open')",
    ],
)
def test_computing_is_no_deed(source: str) -> None:
    assert deeds("a.py", source) == ()


def test_deeds_are_in_the_order_of_lines_and_limited() -> None:
    found = deeds("a.py", "def f():\n    open('b')\nopen('c')\n" + "open('d')\n" * MOST)
    assert found is not None and len(found) == MOST
    assert [deed.line for deed in found] == sorted(deed.line for deed in found)


@pytest.mark.parametrize("source", ["def", "x" * (MOST_CHARACTERS + 1), "a" + ".b" * 40_000, "(" * 9_000])
def test_a_script_that_cannot_be_analysed_has_no_deeds(source: str) -> None:
    assert deeds("a.py", source) in (None, ())
    assert deeds("a.py", "def") is None and deeds("a.py", " " * (MOST_CHARACTERS + 1)) is None
