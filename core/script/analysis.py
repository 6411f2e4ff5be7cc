"""Analyses a script without running it: does it use Keras' ``fit``, its own strategy, or neither?"""

from __future__ import annotations

import ast
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec.structs import replace

from core.script.arguments import declared
from core.script.imports import Module, Sources, read_source, read_sources, resolved
from core.script.mistakes import BATCHES, find_mistakes, find_strategy_mistakes, find_unkept
from core.script.needs import Needs, find_needs
from core.script.notebook import SUFFIX as NOTEBOOK
from core.script.parse import not_python
from core.script.strategies import (
    MIRRORED,
    MULTI_WORKER,
    ON_ONE_MACHINE,
    derived,
    find_strategies,
    last_part,
)
from core.script.syntax import Mistake, SourceTree, Usage, called
from core.vocabulary.answers import Declared
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.paths import shown

Kind = Literal["managed", "own", "neither"]
Found = TypeVar("Found", Usage, Mistake)

SUFFIXES = (".py", ".pyw", NOTEBOOK)
"""File extensions of scripts."""

_KERAS = frozenset(["tensorflow", "keras", "tf_keras"])
_OTHERS = frozenset(["sklearn", "imblearn", "xgboost", "lightgbm", "catboost", "statsmodels", "torch"])
"""Libraries whose ``fit`` is not Keras'. An unknown wrapper counts as Keras."""
_APPLY = frozenset(
    ["apply", "apply_gradients", "minimize", "assign", "assign_add", "assign_sub", "set_weights"]
)
"""Names of calls that apply gradients to weights. The same names on other objects (pandas' series) count,
too."""


class ScriptReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a script does. ``modules``: files read, the script first, relative to its folder. ``needs``: other
    imports.

    ``strategies``: names as in ``tf.distribute``, or of the script's own classes; ``mirrored`` and
    ``multi_worker``: those among them that are, or derive from, MirroredStrategy and
    MultiWorkerMirroredStrategy. ``problem``: why a run would share nothing (only with ``neither``).
    """

    script: str
    folder: str
    kind: Kind
    strategies: tuple[str, ...] = ()
    mirrored: tuple[str, ...] = ()
    multi_worker: tuple[str, ...] = ()
    found: tuple[Usage, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    modules: tuple[str, ...] = ()
    needs: Needs = Needs()
    options: tuple[Declared, ...] = ()
    problem: Problem | None = None

    @property
    def fits_in_own_strategy(self) -> bool:
        """Whether it opens mirrored strategies, of one machine or of several, only for Keras' ``fit``."""
        what = {found.what for found in self.found}
        shared = {*self.mirrored, *self.multi_worker}
        others = set(self.strategies) - shared - ON_ONE_MACHINE
        return "fit" in what and "strategy.run" not in what and bool(shared) and not others

    @property
    def loops_in_mirrored_strategy(self) -> bool:
        """Whether it uses mirrored strategies in custom loops, of one machine or of several, and none that
        needs TensorFlow's own runtime: parameter servers, its own classes for several machines."""
        shared = {*self.mirrored, *(MULTI_WORKER & set(self.multi_worker))}
        others = set(self.strategies) - shared - ON_ONE_MACHINE
        return bool(shared) and not others and not self.fits_in_own_strategy


def analyse(script: Path) -> ScriptReport:
    """Analyse a script with the modules that it imports. Raises ``TandemError`` if it is missing, empty or
    not valid Python."""
    script = _checked(script)
    return _report(script, read_sources(script))


def _checked(script: Path) -> Path:
    name, script = shown(script.name), resolved(script)
    try:
        mode = script.stat().st_mode
    except OSError:
        mode = 0  # reading it will report the problem
    if stat.S_ISDIR(mode):
        raise TandemError(
            code="script-is-folder", what=f"{name} is a folder.", fix="Choose the script inside it."
        )
    if mode and script.suffix not in SUFFIXES:
        raise not_python(name, "its name ends in neither .py nor .ipynb")
    tree = read_source(script)
    if script.suffix != NOTEBOOK and (line := _calls_jupyter(tree)):
        raise TandemError(
            code="script-magic",
            what=f"Line {line} of {name} calls get_ipython(), which only Jupyter has.",
            fix="Remove such lines, or choose the notebook itself: Tandem runs its cells and skips such "
            "commands.",
        )
    if not _has_content(tree):
        raise TandemError(
            code="script-empty",
            what=f"{name} is empty.",
            fix="Save the script in your editor, or choose another one.",
        )
    return script


def _calls_jupyter(tree: ast.Module) -> int | None:
    """The line of a statement ``get_ipython().system(…)``, as in exported notebooks; None: there is none. A
    script that only checks whether it runs in Jupyter calls it in a condition."""
    for node in tree.body:
        value = node.value if isinstance(node, ast.Expr) else None
        while isinstance(value, ast.Call | ast.Attribute):
            value = value.func if isinstance(value, ast.Call) else value.value
        if isinstance(value, ast.Name) and value.id == "get_ipython":
            return node.lineno
    return None


def _has_content(tree: ast.Module) -> bool:
    return not all(
        isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in tree.body
    )


def _report(script: Path, read: Sources) -> ScriptReport:
    sources = tuple(SourceTree(module) for module in read.modules)
    strategies = find_strategies(sources)
    fits = tuple(_fits(sources))
    placed = partial(_placed, read.modules[0])
    of_keras = any(source.imports & _KERAS for source in sources)
    loops = tuple(_own_loops(sources))
    by_batch = [loop for loop in loops if loop.what == BATCHES and of_keras]
    kind: Kind = "own" if strategies else "managed" if fits or by_batch else "neither"
    broken = tuple(
        Mistake(code=error.code, path=path, line=0, what=error.what, fix=error.fix)
        for path, error in read.broken
    )
    names = tuple(dict.fromkeys(found.what for found in strategies))
    mirrored, multi_worker = derived(sources, MIRRORED), derived(sources, MULTI_WORKER)
    needs = find_needs(script.parent, read.modules)
    of_strategies = find_strategy_mistakes(sources, strategies) if kind == "own" else ()
    unkept = find_unkept(by_batch) if kind == "managed" else ()
    mistakes = (*find_mistakes(sources), *of_strategies, *unkept)
    loops = tuple(map(placed, loops))
    return ScriptReport(
        script=script.name,
        folder=str(script.parent),
        kind=kind,
        strategies=names,
        mirrored=tuple(name for name in names if name in mirrored),
        multi_worker=tuple(name for name in names if name in multi_worker),
        found=(*map(placed, (*strategies, *fits)), *loops, *map(placed, _strategy_runs(sources))),
        mistakes=(*_left_out(read.modules[0]), *broken, *map(placed, mistakes)),
        modules=tuple(source.path for source in sources),
        needs=Needs(surely=tuple(map(placed, needs.surely)), maybe=tuple(map(placed, needs.maybe))),
        options=declared(sources[0]),
        problem=_why_neither(script, sources, loops) if kind == "neither" else None,
    )


def _placed(script: Module, found: Found) -> Found:
    """If the script is a notebook, converts a line to its cell's."""
    if found.path != script.path:
        return found
    path, line = script.place(found.line)
    return replace(found, path=path, line=line)


def _left_out(script: Module) -> Iterator[Mistake]:
    if script.notebook is not None and (words := script.notebook.left_out):
        yield Mistake(
            code="notebook-left-out",
            path=script.path,
            line=0,
            what=f"Skipped in {shown(script.path)}, because it only works in Jupyter: {words}.",
            fix="If the training needs any of that (packages, files), set it up before the start."
            if script.notebook.lacks_something
            else "",
        )


def _fits(sources: tuple[SourceTree, ...]) -> Iterator[Usage]:
    """Calls of Keras' ``fit``. The origin of the object distinguishes them from other libraries' ``fit``."""
    if not any(source.imports & _KERAS for source in sources):
        return
    own = {
        node.name
        for source in sources
        for node in source.classes
        if any(isinstance(part, ast.FunctionDef) and part.name == "fit" for part in node.body)
    }
    for source in sources:
        for call in source.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "fit":
                origins = source.origins(call.func.value)
                if not any(_is_foreign(source, origin, own) for origin in origins):
                    yield Usage(path=source.path, line=call.lineno, what="fit")


def _is_foreign(source: SourceTree, origin: str, own: set[str]) -> bool:
    first, last = origin.partition(".")[0], last_part(origin)
    return last in own or last == "ImageDataGenerator" or first in _OTHERS & source.imports


def _own_loops(sources: tuple[SourceTree, ...]) -> Iterator[Usage]:
    """Custom loops that apply gradients. A tape without that only inspects a trained model (grad-cam,
    integrated gradients)."""
    applies = any(called(call) in _APPLY for source in sources for call in source.calls)
    for source in sources:
        for call in source.calls:
            if called(call) == BATCHES or (called(call) == "GradientTape" and applies):
                yield Usage(path=source.path, line=call.lineno, what=called(call))


def _strategy_runs(sources: tuple[SourceTree, ...]) -> Iterator[Usage]:
    for source in sources:
        for call in source.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "run":
                origins = source.origins(call.func.value)
                if any("strategy" in last_part(origin).lower() for origin in origins):
                    yield Usage(path=source.path, line=call.lineno, what="strategy.run")


def _why_neither(script: Path, sources: tuple[SourceTree, ...], loops: tuple[Usage, ...]) -> Problem:
    name = shown(script.name)
    if loops:
        where = f"line {loops[0].line}" + ("" if loops[0].path == script.name else f" of {loops[0].path}")
        what = f"{name} trains in a loop of its own ({loops[0].what}, {where}) without a strategy"
    elif not any(source.imports & _KERAS for source in sources):
        what = f"{name} imports neither Keras nor TensorFlow"
    else:
        what = f"{name} calls no model's fit and builds no strategy"
    return Problem(
        code="script-shares-nothing",
        what=f"{what}: the laptops would share nothing, and each would do all the work alone.",
        fix="Train with model.fit, or build a tf.distribute strategy in the script.",
    )
