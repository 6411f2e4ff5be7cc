"""Finds where a script builds a ``tf.distribute`` strategy, or defines one. Pure."""

from __future__ import annotations

import ast
from collections.abc import Callable

from core.script.syntax import SourceTree, Usage

ACROSS_MACHINES = frozenset(["MultiWorkerMirroredStrategy", "ParameterServerStrategy"])
STRATEGIES = ACROSS_MACHINES | {
    "MirroredStrategy",
    "TPUStrategy",
    "CentralStorageStrategy",
    "OneDeviceStrategy",
    "CollectiveAllReduceStrategy",
}
MIRRORED = frozenset(["MirroredStrategy"])
MULTI_WORKER = frozenset(["MultiWorkerMirroredStrategy", "CollectiveAllReduceStrategy"])
ON_ONE_MACHINE = frozenset(["TPUStrategy", "CentralStorageStrategy", "OneDeviceStrategy"])
"""Strategies for other devices, which a script may name beside a mirrored one."""
_BASES = frozenset(["Strategy", "StrategyV1", "StrategyV2", "StrategyExtended", "StrategyExtendedV1"])


def find_strategies(sources: tuple[SourceTree, ...]) -> tuple[Usage, ...]:
    """Each place that builds or defines a strategy, in reading order."""
    found = _own_classes(sources, _is_strategy_class)
    for source in sources:
        found += [
            Usage(path=source.path, line=node.lineno, what=last)
            for node in source.nodes
            if isinstance(node, ast.Name | ast.Attribute)
            and (last := last_part(source.dotted(node))) in STRATEGIES
            and _is_use(source, node)
        ]
    order = {source.path: number for number, source in enumerate(sources)}
    return tuple(sorted(found, key=lambda item: (order[item.path], item.line)))


def derived(sources: tuple[SourceTree, ...], roots: frozenset[str]) -> frozenset[str]:
    """``roots``, and the script's own classes that derive from one of them, directly or not."""
    own = _own_classes(sources, lambda name: last_part(name) in roots)
    return roots | {found.what for found in own}


def last_part(dotted: str) -> str:
    return dotted.rpartition(".")[2]


def _own_classes(sources: tuple[SourceTree, ...], is_root: Callable[[str], bool]) -> list[Usage]:
    """Classes that derive from a root, directly or through another class of the script. ``is_root``: gets a
    dotted name."""
    known: dict[str, Usage] = {}
    grows = True
    while grows:
        before = len(known)
        for source in sources:
            for node in source.classes:
                bases = [source.dotted(base) for base in node.bases]
                if any(is_root(base) or last_part(base) in known for base in bases):
                    known.setdefault(node.name, Usage(path=source.path, line=node.lineno, what=node.name))
        grows = len(known) > before
    return list(known.values())


def _is_strategy_class(name: str) -> bool:
    last = last_part(name)
    return last in STRATEGIES or (last in _BASES and "distribute" in name)


def _is_use(source: SourceTree, node: ast.Name | ast.Attribute) -> bool:
    """Whether a strategy's name is used to build one, not just to compare, test, annotate or derive from."""
    if not isinstance(node.ctx, ast.Load):
        return False
    for parent, child in source.around(node):
        match parent:
            case ast.Attribute() | ast.ClassDef() | ast.arg() | ast.Compare():
                return False
            case ast.Call():
                return source.dotted(parent.func) not in ("isinstance", "issubclass")
            case ast.AnnAssign():
                return child is not parent.annotation
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return child is not parent.returns
            case ast.stmt():
                return True
    return True
