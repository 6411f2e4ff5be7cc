"""Finds the modules that a script imports from elsewhere, to check every laptop for them before a run. Pure,
except for checking which files are beside the script."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from core.script.imports import Module, imported_files
from core.script.syntax import Usage

_CATCHES = frozenset(["ImportError", "ModuleNotFoundError", "Exception", "BaseException"])
_IMPORT_STATE = frozenset(["sys.path", "sys.modules", "sys.meta_path", "site.addsitedir"])
"""A script that changes these, or runs pip, may import modules that can't be found before it runs."""
_OURS = ("keras", "numpy", "tensorflow")
"""Tandem itself needs these; their versions are compared when laptops connect."""
_CODE = (".py", ".pyc", ".pyd", ".so")


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """``surely``: the script fails without it. ``maybe``: imported in a function, under a condition, or after
    the script changed the import path. Imports guarded by a ``try`` are in neither.

    ``what`` is the module's top-level name; each is listed once, at its first import.
    """

    surely: tuple[Usage, ...] = ()
    maybe: tuple[Usage, ...] = ()


def find_needs(folder: Path, modules: tuple[Module, ...]) -> Needs:
    """``modules``: the script first, then the modules of its folder that it imports."""
    by_path = {module.path: module for module in modules}
    changes_imports = any(_changes_imports(node) for module in modules for node in ast.walk(module.tree))
    surely, maybe = dict[str, Usage](), dict[str, Usage]()
    waiting, met = [(modules[0].path, not changes_imports)], set[tuple[str, bool]]()
    while waiting:
        path, sure_here = waiting.pop(0)
        if (path, sure_here) in met or path not in by_path:
            continue
        met.add((path, sure_here))
        body = by_path[path].tree.body
        if path != modules[0].path:
            body = [node for node in body if not _is_for_the_script(node)]
        for node, sure in _imports(body, sure_here):
            waiting += [(other, sure) for other in imported_files(folder, path, node)]
            for name in _first_names(node):
                if not _is_elsewhere(folder, name):
                    found = surely if sure else maybe
                    found.setdefault(name, Usage(path=path, line=node.lineno, what=name))
    left = (usage for name, usage in maybe.items() if name not in surely)
    return Needs(surely=tuple(surely.values()), maybe=tuple(left))


def _imports(body: list[ast.stmt], sure: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Each unguarded import, and whether it is unconditional."""
    for node in body:
        match node:
            case ast.Import() | ast.ImportFrom():
                yield node, sure
            case ast.Try() | ast.TryStar():
                if not any(_catches(handler.type) for handler in node.handlers):
                    yield from _imports(node.body, sure)
                    yield from _imports(node.orelse, sure)
                yield from _imports(node.finalbody, sure)
            case ast.With():
                if not any(_suppresses(item.context_expr) for item in node.items):
                    yield from _imports(node.body, sure)
            case ast.If():
                if "TYPE_CHECKING" not in ast.unparse(node.test):
                    yield from _imports(node.body, sure and "__name__" in ast.unparse(node.test))
                yield from _imports(node.orelse, False)
            case ast.ClassDef():
                yield from _imports(node.body, sure)
            case ast.Match():
                for each in node.cases:
                    yield from _imports(each.body, False)
            case ast.For() | ast.While() | ast.AsyncFor():
                yield from _imports([*node.body, *node.orelse], False)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.AsyncWith():
                yield from _imports(node.body, False)


def _is_for_the_script(node: ast.stmt) -> bool:
    """``if __name__ == "__main__":``, which no imported module runs."""
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


def _catches(caught: ast.expr | None) -> bool:
    if caught is None:
        return True
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(ast.unparse(kind).rpartition(".")[2] in _CATCHES for kind in kinds)


def _suppresses(context: ast.expr) -> bool:
    is_call = isinstance(context, ast.Call) and ast.unparse(context.func).endswith("suppress")
    return is_call and any(_catches(caught) for caught in context.args)  # type: ignore[attr-defined]


def _first_names(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from dict.fromkeys(alias.name.partition(".")[0] for alias in node.names)
    elif node.module and not node.level:
        yield node.module.partition(".")[0]


def _is_elsewhere(folder: Path, name: str) -> bool:
    if name in sys.stdlib_module_names or name in _OURS or name.startswith("__"):
        return True
    return (folder / name).is_dir() or any(path.suffix in _CODE for path in folder.glob(f"{name}.*"))


def _changes_imports(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return f"{module}.{name}" in _IMPORT_STATE
        case ast.ImportFrom(module="sys" | "site" as module, names=names):
            return any(f"{module}.{alias.name}" in _IMPORT_STATE for alias in names)
        case ast.Constant(value=str(text)):
            return text == "pip" or "pip install" in text
    return False
