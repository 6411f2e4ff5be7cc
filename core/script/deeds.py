"""A script's actions beyond computing, from its text alone: files, downloads, and programs that it starts.

For users who are asked to run it. This shows where to look and proves nothing: a script can hide its actions.
Pure.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import islice

from core.script.imports import Module
from core.script.parse import parse
from core.script.syntax import SourceTree, called
from core.script.writes import written_to
from core.vocabulary.answers import Deed
from core.vocabulary.errors import TandemError
from core.vocabulary.text import plain

MOST, MOST_CHARACTERS = 200, 100_000
"""Limits per file: of deeds, and of characters analysed. Longer text may be crafted to be slow."""
_STARTS = re.compile(
    r"(subprocess|ctypes|runpy|pty)\..+|os\.(system|popen|fork|startfile|(exec|spawn|posix_spawn)\w*)"
    r"|multiprocessing\.(Process|Pool)|eval|exec|compile|__import__|importlib\.import_module"
    r"|(pickle|cPickle|dill|cloudpickle|joblib|marshal)\.loads?"
)
"""Other programs, and code that is not in the text."""
_NETWORK = re.compile(
    r"(urllib|urllib3|requests|httpx|aiohttp|ftplib|smtplib|paramiko|socket|websockets?|wget|gdown|boto3)\..+"
    r"|http\.client\..+"
)
_DATA = re.compile(
    r".+\.(datasets\.\w+\.load_data|get_file|from_pretrained)|tensorflow_hub\..+|.*datasets\.load_dataset"
    r"|tensorflow_datasets\.(load|builder)|(huggingface_hub|kagglehub)\..+|sklearn\.datasets\.fetch_\w+"
)
"""Data sets and models from public sources."""
_READS = re.compile(
    r"open|loadtxt|genfromtxt|fromfile|memmap|load_(model|weights|img)|i?mread|read_\w+|listdir|scandir"
    r"|i?glob|rglob|iterdir|\w+_from_directory|flow_from_\w+|(TFRecord|TextLine|Csv)Dataset"
)
_TAKES_AWAY = re.compile(
    r"shutil\.(rmtree|move)|os\.(remove|unlink|rmdir|removedirs|rename|replace|chmod|chown|symlink|link)"
)
_ENVIRONMENT = "os.environ"
_BESIDE = re.compile(
    r"(?:pathlib\.)?Path\(__file__\)(?:\.(?:resolve|absolute)\(\))?"
    r"(?:\.with_name\('([^'\\]*)'\)|\.parent / '([^'\\]*)')"
    r"|os\.path\.join\(os\.path\.dirname\((?:os\.path\.(?:abspath|realpath)\()?__file__\)?\), '([^'\\]*)'\)"
)
"""A path beside the script. It is shown without the script's folder."""
_OUTSIDE = re.compile(r"[/~\\]|[A-Za-z]:|(.*[/\\])?\.\.([/\\]|$)")


def deeds(path: str, text: str) -> tuple[Deed, ...] | None:
    """The script's actions in the order of its lines; None if the text cannot be analysed."""
    if len(text) > MOST_CHARACTERS:
        return None
    try:
        source = SourceTree(Module(path=path, tree=parse(text, path)))
        return tuple(sorted(islice(_deeds(source), MOST), key=lambda deed: deed.line))
    except (TandemError, RecursionError):
        return None


def _deeds(source: SourceTree) -> Iterator[Deed]:
    for node in source.nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            if source.dotted(node.value) == _ENVIRONMENT:
                yield _environment(node)
        elif isinstance(node, ast.Call) and (deed := _deed(source, node)) is not None:
            yield deed


def _deed(source: SourceTree, call: ast.Call) -> Deed | None:
    name, last = source.dotted(call.func), called(call)
    first = next(iter(call.args), None)
    if _STARTS.fullmatch(name):
        begins = first.elts[0] if isinstance(first, ast.List | ast.Tuple) and first.elts else first
        what = f"{name} {_said(source, begins)}" if begins is not None else name
        return Deed(kind="starts", what=plain(what, 80), line=call.lineno, marked=True)
    if name.startswith(_ENVIRONMENT) or name == "os.getenv":
        return _environment(call)
    loads = ".applications." in name and not any(
        keyword.arg == "weights" and getattr(keyword.value, "value", "") is None for keyword in call.keywords
    )
    if loads or _NETWORK.fullmatch(name) or _DATA.fullmatch(name):
        given = (_said(source, each) for each in [*call.args, *(keyword.value for keyword in call.keywords)])
        address = next((text for text in given if "://" in text), "")
        what = address or name.removesuffix(".load_data")
        marked = _NETWORK.fullmatch(name) is not None
        return Deed(kind="downloads", what=plain(what, 80), line=call.lineno, marked=marked)
    if _TAKES_AWAY.fullmatch(name) or last in ("unlink", "rmdir"):
        what = f"{last} {_said(source, first or call.func)}"
        return Deed(kind="writes", what=plain(what, 80), line=call.lineno, marked=True)
    if (target := written_to(call)) is not None:
        return _of_file(source, "writes", target)
    if _READS.fullmatch(last) or name in ("numpy.load", "h5py.File", "torch.load"):
        of = call.func.value if isinstance(call.func, ast.Attribute) and first is None else first
        return None if of is None else _of_file(source, "reads", of)
    return None


def _of_file(source: SourceTree, kind: str, named: ast.AST) -> Deed:
    path = _said(source, named)
    what, outside = plain(path, 80), _OUTSIDE.match(path) is not None
    line = getattr(named, "lineno", 0)
    return Deed(kind="writes" if kind == "writes" else "reads", what=what, line=line, marked=outside)


def _environment(node: ast.expr) -> Deed:
    return Deed(kind="reads", what="environment variables", line=node.lineno, marked=True)


def _said(source: SourceTree, node: ast.AST) -> str:
    """A value's text, or else its source expression. Never joins paths: the script may be crafted to make
    that slow."""
    value = next(iter(source.values(node)), node) if isinstance(node, ast.expr) else node
    if isinstance(value, ast.Call) and len(value.args) == 1 and called(value) in ("Path", "PurePath"):
        value = value.args[0]
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    beside = _BESIDE.fullmatch(ast.unparse(value))
    return next(filter(None, beside.groups())) if beside and any(beside.groups()) else ast.unparse(node)
