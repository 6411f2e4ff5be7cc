from pathlib import Path

import pytest

from core.script.imports import MODULES_FOLLOWED, read_source, read_sources
from core.vocabulary.errors import TandemError
from tests.core.project.making import write


def modules(folder: Path, script: str = "train.py", most: int = MODULES_FOLLOWED) -> list[str]:
    return [found.path for found in read_sources(folder / script, most_modules=most).modules]


def test_imports_are_followed_inside_the_folder_and_nowhere_else(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "outside.py": "",
            "p/train.py": "import os, keras\nimport a.b as x\nfrom nets import cnn, CONSTANT\nimport outside",
            "p/a/b.py": "import train",
            "p/nets/__init__.py": "from . import base",
            "p/nets/base.py": "from ...outside import x\nfrom .. import y",
            "p/nets/cnn.py": "from .base import Base\nfrom deep import *",
            "p/deep.py": "import importlib\nimportlib.import_module('plugins.one')\n__import__('two')",
            "p/plugins/one.py": "importlib.import_module(name); importlib.import_module('../../outside')",
            "p/two.py": "",
            "p/never.py": "",
        },
    )
    assert modules(tmp_path / "p")[0] == "train.py"
    assert set(modules(tmp_path / "p")) == {
        "train.py",
        "a/b.py",
        "nets/__init__.py",
        "nets/base.py",
        "nets/cnn.py",
        "deep.py",
        "plugins/one.py",
        "two.py",
    }


def test_a_package_comes_before_a_module_of_its_name(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": "import x", "x.py": "", "x/__init__.py": ""})
    assert modules(tmp_path) == ["train.py", "x/__init__.py"]


def test_nothing_is_executed(tmp_path: Path) -> None:
    text = f"open({str(tmp_path / 'ran')!r}, 'w')\nimport helper\n"
    write(tmp_path, {"train.py": text, "helper.py": text})
    assert modules(tmp_path) == ["train.py", "helper.py"]
    assert not (tmp_path / "ran").exists()


def test_a_module_that_python_cannot_parse_is_listed_as_broken(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": "import helper, binary", "helper.py": "x = (", "binary.py": b"\0"})
    read = read_sources(tmp_path / "train.py")
    assert [found.path for found in read.modules] == ["train.py"]
    assert {path: error.code for path, error in read.broken} == {
        "helper.py": "script-syntax",
        "binary.py": "script-not-python",
    }


def test_the_number_of_modules_read_is_limited(tmp_path: Path) -> None:
    write(tmp_path, {f"m{n}.py": f"import m{n + 1}" for n in range(9)})
    assert modules(tmp_path, "m0.py", most=3) == ["m0.py", "m1.py", "m2.py"]


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        (b"x = (\n", "script-syntax", "line 1"),
        (b"a = 1\nb = 2\nprint 'hi'\n", "script-syntax", "line 3"),
        (b"if x:\n\ty\n        z\n", "script-syntax", "line 3"),
        (b"\x7fELF\0\0", "script-not-python", "bytes that are not text"),
        (b"\xff\xfe\xfa", "script-", ""),
        (b"# coding: klingon\n", "script-", ""),
        (b"(" * 5000, "script-", ""),
        (b"x = " + b"-" * 200_000 + b"1", "script-", ""),
        (b"x" * 5_000_000, "script-not-python", "larger than 2 MB"),
    ],
    ids=["open", "python 2", "tabs", "binary", "encoding", "coding", "deep", "deeper", "huge"],
)
def test_invalid_python_is_reported_with_its_line(
    tmp_path: Path, source: bytes, code: str, said: str
) -> None:
    write(tmp_path, {"train.py": source})
    with pytest.raises(TandemError) as caught:
        read_source(tmp_path / "train.py")
    assert caught.value.code.startswith(code)
    assert said in caught.value.what
    assert "train.py" in caught.value.what
    assert caught.value.fix


def test_doubtful_escapes_in_a_script_raise_no_warning_here(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": "x = '\\d'\ny = 1 is 1\n"})
    assert read_source(tmp_path / "train.py").body
