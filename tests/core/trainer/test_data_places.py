"""A script whose data lies in another place here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from core.trainer.data_places import Places

DATA = {"~/photos": "/store/ab", "/home/anna/photos": "/store/ab", "/data": "/mnt/data"}


@pytest.mark.parametrize(
    ("text", "here"),
    [
        ("open('~/photos/1.jpg')", "open('/store/ab/1.jpg')"),
        ('Path("/home/anna/photos") / "1.jpg"', 'Path("/store/ab") / "1.jpg"'),
        ("f'/data/{name}'", "f'/mnt/data/{name}'"),
        ("rb'/data'", "rb'/mnt/data'"),
        ("'/data-2'", "'/data-2'"),
        ("'in /data'", "'in /data'"),
        ("'/home/anna/photos2'", "'/home/anna/photos2'"),
    ],
)
def test_strings_that_begin_with_its_path_lead_to_it(text: str, here: str) -> None:
    assert Places(DATA, Path("/work")).text(text) == here


@pytest.mark.parametrize(
    ("argument", "here"),
    [
        ("/data", "/mnt/data"),
        ("--images=/home/anna/photos/cats", "--images=/store/ab/cats"),
        ("/data-2", "/data-2"),
        ("--text=see /data", "--text=see /data"),
    ],
)
def test_arguments_lead_to_it(argument: str, here: str) -> None:
    assert Places(DATA, Path("/work")).argument(argument) == here


def test_a_place_that_no_string_can_hold_changes_nothing() -> None:
    assert Places({"/data": "/mnt/it's"}, Path("/work")).text("'/data'") == "'/data'"


@pytest.mark.parametrize("path", ['/a" if ok else "/a', "/a' if ok else '/a", "/a{check()}", "/a\\"])
def test_invariant_a_path_replaces_no_code(path: str) -> None:
    for text in (f'open("{path}/1.jpg")', f"open(f'{path}')"):
        assert Places({path: "/store/ab"}, Path("/work")).text(text) == text


_LOOK = """
import inspect, sys
from core.trainer import script
script.run(__import__("pathlib").Path(sys.argv[1]), ["--in=/data"], data={"/data": "/mnt"})
arguments, found, own, *functions = sys.seen
assert (arguments, found, own) == (["--in=/mnt"], "/mnt/x", "/mnt/y"), (arguments, found, own)
# AutoGraph compiles what it traces from the source.
assert all("'/mnt/" in inspect.getsource(each) for each in functions)
print("seen")
"""


@pytest.mark.real
def test_the_script_its_modules_and_readers_of_their_text_see_the_place(tmp_path: Path) -> None:
    (tmp_path / "where.py").write_text("def find():\n    return '/data/x'\n")
    main = tmp_path / "train.py"
    main.write_text(
        "import sys\nfrom where import find\n"
        "def own():\n    return '/data/y'\n"
        "sys.seen = (sys.argv[1:], find(), own(), find, own)\n"
    )
    command = [sys.executable, "-c", _LOOK, str(main)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("seen\n", "")
