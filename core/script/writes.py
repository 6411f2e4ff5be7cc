"""Finds out from a script's text whether it reads the files that it names, or only writes them.

Blocks: use a thread. In case of doubt, a file counts as read.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from core.script.imports import read_sources
from core.script.mentions import named_in_texts
from core.script.path_texts import PathTexts
from core.script.syntax import SourceTree, called
from core.vocabulary.errors import TandemError

_MAKES_PATHS = frozenset(["Path", "PurePath", "join", "abspath", "str", "expanduser", "format", "resolve"])
_WRITES = re.compile(
    r"ModelCheckpoint|CSVLogger|save(_weights|_model|_img|z|z_compressed|txt|fig)?|plot_model|mkdir|makedirs"
    r"|TensorBoard|create_file_writer"
    r"|to_(csv|json|pickle)|write_\w+"
)
_PATH_KEYWORDS = frozenset(
    ["filepath", "file", "fname", "filename", "path", "path_or_buf", "log_dir", "logdir", "to_file"]
)
_OBJECT_FIRST = frozenset(["save_model", "plot_model"])
_SHOWS = "print"
_OPENS_TO_WRITE = re.compile(r"w[bt]?")
_LISTS = re.compile(
    r"i?glob|rglob|listdir|scandir|iterdir|f?walk|latest_checkpoint|system|exec|eval|popen"
    r"|input|getenvb?|copytree|copyfile|copy2|make_archive"
)
"""Calls that read or run files that the script does not name."""
_MOVES = re.compile(r"shutil\.(copy\w*|move)|os\.(rename\w*|replace|link|symlink|exec\w+|(posix_)?spawn\w+)")
_ENVIRONMENT = re.compile(r"(.+\.)?environb?")
_OF_A_FOLDER = re.compile(r"\w+_from_directory")
_UNSEEN = frozenset(["subprocess", "importlib", "runpy"])
_CODE = (".py", ".pyw", ".ipynb")
_FILLED_IN = re.compile(r"%[-+ #0-9.]*[a-z]|\{[^{}]*\}")
_LEAST = 2
"""Characters of a part of a name; shorter parts say nothing."""
_USES = 32
"""Uses of one name that are examined; a name with more counts as read."""


class _Mention(NamedTuple):
    """A text in the source as a possible file name: the part after its last ``/``. Names are compared in
    lower case, as some systems do not distinguish ``A`` from ``a``."""

    name: str
    is_part: bool
    """It is combined with other parts."""

    @property
    def is_whole(self) -> bool:
        """It is a complete name."""
        return not self.is_part and not self.name.startswith(".") and not set(self.name) & set("*?[%{")

    def may_mean(self, name: str) -> bool:
        own = self.name.lower()
        if own == name or fnmatchcase(name, _FILLED_IN.sub("*", self.name).lower()):
            return True
        if len(own) < _LEAST:
            return False
        is_end = self.is_part or own.startswith(".")
        return (self.is_part and name.startswith(own)) or (is_end and name.endswith(own))


def only_written(
    script: Path, paths: Collection[str], arguments: Collection[str] = (), others: Collection[str] = ()
) -> frozenset[str]:
    """The ``paths`` that the script and its imports write and never read: an earlier run's outputs.

    Includes plots that Tandem saved for it and TensorBoard's files, whose names are nowhere in the text.
    Never includes code, or names in the ``arguments`` or in a text that travels: the rest of ``paths``, and
    ``others``.
    """
    try:
        sources = read_sources(script)
    except TandemError:
        return frozenset()
    modules = [SourceTree(module) for module in sources.modules]
    if sources.broken or any(_reads_unseen(source) for source in modules):
        return frozenset()
    read = {mention for source in modules for mention in _read(source, follows_names=len(modules) == 1)}
    whole = {mention.name.lower() for mention in read if mention.is_whole}
    parts = [mention for mention in read if not mention.is_whole]
    written = {path for source in modules for path in _written(source)}
    unnamed = re.compile(rf"({re.escape(script.stem)}-plot-)\d+\.png|(?:.*/)?(events\.out\.tfevents\.)[^/]+")
    found: dict[str, str] = {}
    for path in paths:
        match, steps = unnamed.fullmatch(path), path.lower().split("/")
        if path.endswith(_CODE) or not (path in written or match):
            continue
        if any(step in argument.lower() for step in steps for argument in arguments) or not whole.isdisjoint(
            steps
        ):
            continue
        if not any(mention.may_mean(step) for mention in parts for step in steps):
            found[path] = next(filter(None, match.groups())) if match else steps[-1]
    if not found:
        return frozenset()
    return frozenset(found.keys() - named_in_texts(script.parent, found, [*paths, *others]))


def _read(source: SourceTree, *, follows_names: bool) -> Iterator[_Mention]:
    """Names that may be read. ``follows_names``: no other module can use a name's value differently."""
    for node in source.nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        parent = next((parent for parent, _ in source.around(node)), None)
        name = node.value.replace("\\", "/").rstrip("/").rpartition("/")[2]
        if not name or isinstance(parent, ast.Expr):
            continue
        found = list(uses(source, node, followed=not follows_names))
        if not found or is_read(found):
            is_sum = isinstance(parent, ast.BinOp) and not isinstance(parent.op, ast.Div)
            yield _Mention(name, is_sum or isinstance(parent, ast.JoinedStr))


def _written(source: SourceTree) -> Iterator[str]:
    """Files written under a literal name, relative to the script's folder."""
    texts = PathTexts(source, unknown_is_here=True)
    for call in source.calls:
        target = written_to(call)
        path = texts.of(target) if target is not None else None
        if path is not None and path.is_whole and path.text:
            yield posixpath.normpath(path.text.replace("\\", "/"))


def written_to(call: ast.Call) -> ast.AST | None:
    """The part of a call that names the file it writes; None: it writes none."""
    target = _target(call)
    if target is None or _WRITES.fullmatch(_use(call, target)) is None:
        return None
    if isinstance(target, ast.keyword) or (target is call.func and isinstance(target, ast.Attribute)):
        return target.value
    return target


def is_read(found: Iterable[str]) -> bool:
    """Whether one of these ``uses`` does more than write to a file of that name, or show the name."""
    return any(use != _SHOWS and _WRITES.fullmatch(use) is None for use in found)


def uses(source: SourceTree, node: ast.AST, followed: bool = False) -> Iterator[str]:
    """Names of the functions that are passed ``node``, or the name that it was assigned to; "" where its use
    is unknown, or where the file's existing content matters."""
    for parent, child in source.around(node):
        match parent:
            case ast.Call() if called(parent) in _MAKES_PATHS:
                continue
            case ast.Call():
                yield _use(parent, child)
                return
            case ast.keyword() | ast.BinOp() | ast.Attribute() | ast.JoinedStr() | ast.FormattedValue():
                continue
            case ast.Assign(targets=[ast.Name(id=name)]) if not followed:
                others = source.loads.get(name, ())
                if len(others) > _USES:
                    break
                for other in others:
                    yield from uses(source, other, followed=True)
                return
            case _:
                break
    yield ""


def _use(call: ast.Call, given: ast.AST) -> str:
    """``given``: the part of the call that contains the value; only one part names the file to write."""
    name = called(call)
    if _WRITES.fullmatch(name) and given is not _target(call):
        return ""
    said = {keyword.arg: keyword.value for keyword in call.keywords}
    if name == "open":
        modes = [*call.args[isinstance(call.func, ast.Name) :], *filter(None, [said.get("mode")])]
        writes = given is _target(call) and any(_is_to_write(mode) for mode in modes)
        return "write_file" if writes else name
    needs_content = {"append", "overwrite"} & said.keys() or (
        "mode" in said and name != "ModelCheckpoint" and not _is_to_write(said["mode"])
    )
    return "" if needs_content or (name == "CSVLogger" and len(call.args) > 2) else name


def _target(call: ast.Call) -> ast.AST | None:
    """The part of a writing call that names the file."""
    name, func, args = called(call), call.func, call.args
    if isinstance(func, ast.Attribute) and (
        name in ("write_text", "write_bytes")
        or (name in ("open", "mkdir") and (not args or _is_to_write(args[0])))
    ):
        return func
    if keyword := next((keyword for keyword in call.keywords if keyword.arg in _PATH_KEYWORDS), None):
        return keyword
    of_saved_model = isinstance(func, ast.Attribute) and getattr(func.value, "attr", "") == "saved_model"
    return next(islice(args, int(name in _OBJECT_FIRST or of_saved_model), None), None)


def _is_to_write(mode: ast.expr) -> bool:
    value = mode.value if isinstance(mode, ast.Constant) else None
    return isinstance(value, str) and _OPENS_TO_WRITE.fullmatch(value) is not None


def _reads_unseen(source: SourceTree) -> bool:
    """Whether a module may read files that it does not name: a whole folder, files that another program or
    the user names, or files that it renamed."""
    if source.imports & _UNSEEN or any(_asks_environment(source, node) for node in source.nodes):
        return True
    for call in source.calls:
        name = called(call)
        if _LISTS.fullmatch(name) or _MOVES.fullmatch(source.dotted(call.func)) or _moves(call):
            return True
        if _OF_A_FOLDER.fullmatch(name):
            folder = next(iter(call.args), None) or next((k.value for k in call.keywords), None)
            named = [n.value for n in ast.walk(folder) if isinstance(n, ast.Constant)] if folder else []
            if not any(isinstance(text, str) and text.strip("./") for text in named):
                return True
    return False


def _moves(call: ast.Call) -> bool:
    """``path.rename(other)``, ``path.replace(other)``. A text's ``replace`` takes two, a table's keywords."""
    if called(call) not in ("rename", "replace"):
        return False
    match call:
        case ast.Call(args=[value], keywords=[]):
            return not isinstance(value, ast.Dict)
        case ast.Call(args=[], keywords=[ast.keyword(arg="target")]):
            return True
    return False


def _asks_environment(source: SourceTree, node: ast.AST) -> bool:
    """Whether a value comes from the environment: neither set there, nor only checked."""
    if not isinstance(node, ast.Name | ast.Attribute) or not _ENVIRONMENT.fullmatch(source.dotted(node)):
        return False
    match [parent for parent, _ in islice(source.around(node), 3)]:
        case [ast.Subscript(ctx=ast.Store() | ast.Del()), *_]:
            return False
        case [ast.Compare(ops=[ast.In() | ast.NotIn()]), *_]:
            return False
        case [ast.Attribute(), ast.Call(), ast.Expr()]:
            return False
    return True
