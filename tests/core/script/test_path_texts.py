"""Paths as people write them."""

from __future__ import annotations

import ast

import pytest

from core.script.imports import Module
from core.script.path_texts import PathText, PathTexts
from core.script.syntax import SourceTree

IMPORTS = (
    "import os, glob, pathlib\nimport tensorflow as tf\nfrom pathlib import Path\nfrom os import path as p\n"
)


def told(text: str, *, unknown_is_here: bool = False) -> PathText | None:
    """The path of the last statement, an assignment or an expression."""
    source = SourceTree(Module(path="src/train.py", tree=ast.parse(IMPORTS + text)))
    (last,) = source.nodes[0].body[-1:]  # type: ignore[attr-defined]
    found = PathTexts(source, unknown_is_here=unknown_is_here).of(last.value)
    return None if found is None else found._replace(parts=())


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("'/data/photos'", "/data/photos"),
        ("r'C:\\data\\photos'", "C:/data/photos"),
        ("'/data' '/photos'", "/data/photos"),
        ("'/data' + '/photos'", "/data/photos"),
        ("'$HOME/photos'", "~/photos"),
        ("os.path.expandvars('${HOME}/photos')", "~/photos"),
        ("os.environ['HOME'] + '/photos'", "~/photos"),
        ("os.path.join(os.getenv('HOME', ''), 'photos')", "~/photos"),
        ("os.path.join('/data', 'photos', 'cats')", "/data/photos/cats"),
        ("p.join(p.expanduser('~'), 'photos')", "~/photos"),
        ("os.path.join('/old', '/data', 'photos')", "/data/photos"),
        ("tf.io.gfile.join('/data', 'photos')", "/data/photos"),
        ("Path('/data') / 'photos' / 'cats'", "/data/photos/cats"),
        ("Path('/data', 'photos').joinpath('cats')", "/data/photos/cats"),
        ("str((pathlib.Path.home() / 'photos').resolve())", "~/photos"),
        ("Path('~/photos').expanduser()", "~/photos"),
        ("from pathlib import *\nPath('~') / 'photos'", "~/photos"),
        ("os.path.join('', 'photos')", "photos"),
        ("BASE = Path.home() / 'data'\nPHOTOS = BASE / 'photos'\nPHOTOS", "~/data/photos"),
        ("BASE = '/data'\nf'{BASE}/photos'", "/data/photos"),
        ("NAME = 'photos'\nos.path.join('/data', NAME)", "/data/photos"),
        ("Path('/data/photos/cats').parent / 'dogs'", "/data/photos/dogs"),
        ("os.path.dirname('/data/photos/1.jpg')", "/data/photos"),
        ("Path(__file__).parent.parent / 'data'", "./data"),
        ("Path(__file__).resolve().parents[2] / 'data'", "../data"),
        ("os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'data')", "src/../data"),
    ],
)
def test_a_path_of_constants_is_read(text: str, path: str) -> None:
    assert told(text) == PathText(path)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("f'/data/photos/{number}.jpg'", "/data/photos/"),
        ("'/data/photos/%d.jpg' % number", "/data/photos/"),
        ("'/data/photos/{}.jpg'.format(number)", "/data/photos/"),
        ("'/data/photos/' + name", "/data/photos/"),
        ("Path('/data') / 'photos' / name / 'x'", "/data/photos/"),
        ("os.path.join('/data', f'photos-{year}', 'cats')", "/data/photos-"),
    ],
)
def test_the_beginning_of_a_formatted_path_is_read(text: str, path: str) -> None:
    assert told(text) == PathText(path, is_whole=False)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("folder + '/photos'", "./photos"),
        ("f'{folder}/photos'", "./photos"),
        ("Path(folder) / 'photos'", "photos"),
        ("os.path.join(pick(), 'photos', 'cats')", "photos/cats"),
        ("os.path.join(pick(), '/data')", "/data"),
    ],
)
def test_an_unknown_folder_may_be_taken_for_the_scripts(text: str, path: str) -> None:
    assert told(text, unknown_is_here=True) == PathText(path)


@pytest.mark.parametrize("text", ["folder", "folder + 'photos'", "f'{folder}photos'", "f'{folder}'", "f''"])
def test_an_unknown_text_is_no_folder(text: str) -> None:
    assert told(text, unknown_is_here=True) is None


@pytest.mark.parametrize(
    "text",
    [
        "folder",
        "folder + '/photos'",
        "f'{folder}/photos'",
        "Path(folder) / 'photos'",
        "os.environ['PHOTOS']",
        "pick('/data')",
        "os.path.join(*parts)",
        "Path.home().parent",
        "3",
        "BASE = BASE\nBASE",
        "a = b\nb = a\na",
    ],
)
def test_a_path_with_an_unknown_beginning_is_unknown(text: str) -> None:
    assert told(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "BASE = '/data'\nBASE = '/other'\nBASE + '/photos'",
        "BASE = '/data'\nBASE += '/other'\nBASE + '/photos'",
        "BASE = '/data'\ndef load(BASE): pass\nBASE + '/photos'",
        "BASE = '/data'\nfor BASE in folders: pass\nBASE + '/photos'",
        "BASE = '/data'\nfrom settings import BASE\nBASE + '/photos'",
        "BASE = '/data'\ntry: pass\nexcept OSError as BASE: pass\nBASE + '/photos'",
        "BASE = '/data'\nmatch x:\n  case BASE: pass\nBASE + '/photos'",
    ],
)
def test_a_name_that_may_have_another_value_is_unknown(text: str) -> None:
    assert told(text) is None


def test_the_nodes_of_a_path_are_reported() -> None:
    source = SourceTree(Module(path="train.py", tree=ast.parse("BASE = '/data'\nBASE + '/photos'")))
    node = source.nodes[0].body[1].value  # type: ignore[attr-defined]
    found = PathTexts(source).of(node)
    assert found is not None
    assert [type(part).__name__ for part in found.parts] == ["BinOp", "Name", "Constant"]


def test_a_long_expression_is_given_up() -> None:
    assert told("/".join(["'/data'"] + ["'x'"] * 100)) is None


@pytest.mark.timeout(60)
def test_a_name_that_stands_for_thousands_of_others_takes_no_time() -> None:
    """Another laptop's script may contain such a name."""
    steps = [f"a{step} = os.path.join({', '.join([f'a{step - 1}'] * 50)})" for step in range(1, 10)]
    text = "\n".join(["a0 = '/data'", *steps])
    assert told(f"{text}\na4") == PathText("/data")
    assert told(f"{text}\na9") is None, "it is too deep"


def test_a_path_that_no_system_has_is_none() -> None:
    steps = [f"a{step} = a{step - 1} + a{step - 1}" for step in range(1, 4)]
    assert told("\n".join([f"a0 = {'/' + 'x' * 1000!r}", *steps, "a3"])) is None
