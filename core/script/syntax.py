"""Queries on a syntax tree, and the types of findings: uses and mistakes with their lines. Pure."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from core.script.imports import Module
from core.vocabulary.errors import Problem
from core.vocabulary.paths import shown

_STEPS = 8
"""How far a name is followed through assignments."""
_VALUES = 16
"""How many assignments to one name are examined."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Something in the source that determines how it trains: ``what`` it is, and where."""

    path: str
    line: int
    what: str


class Mistake(msgspec.Struct, frozen=True, kw_only=True):
    """``line`` 0: the whole file. ``detail``: for programs."""

    code: str
    path: str
    line: int
    what: str
    fix: str
    detail: str = ""

    @property
    def problem(self) -> Problem:
        """The same for a screen, with its place in front."""
        where = f"{shown(self.path)}, line {self.line}: " if self.line else ""
        return Problem(code=self.code, what=where + self.what, fix=self.fix, detail=self.detail)


class SourceTree:
    """One module. Names are followed within the module, whatever the order of its lines."""

    def __init__(self, module: Module) -> None:
        self.path = module.path
        self.nodes: tuple[ast.AST, ...] = tuple(ast.walk(module.tree))
        self._parents: dict[ast.AST, ast.AST] = {}
        self._aliases: dict[str, str] = {}
        self._values: dict[str, list[ast.expr]] = defaultdict(list)
        for node in self.nodes:
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node
        for node in self.nodes:
            self._note(node)

    @cached_property
    def imports(self) -> frozenset[str]:
        """The first part of each name that the module imports."""
        return frozenset(name.partition(".")[0] for name in self._imported)

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        return tuple(node for node in self.nodes if isinstance(node, ast.Call))

    @cached_property
    def loads(self) -> Mapping[str, Sequence[ast.Name]]:
        """The uses of each name, without those that set it."""
        found: dict[str, list[ast.Name]] = defaultdict(list)
        for node in self.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found[node.id].append(node)
        return found

    @cached_property
    def classes(self) -> tuple[ast.ClassDef, ...]:
        return tuple(node for node in self.nodes if isinstance(node, ast.ClassDef))

    def dotted(self, node: ast.AST) -> str:
        """``tf.keras.Model`` → ``tensorflow.keras.Model``; ``""`` if it is no plain dotted name."""
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self._meaning(node.id), *reversed(names)])

    def origins(self, node: ast.expr) -> frozenset[str]:
        """Dotted names of the classes or functions that may have made a value, however far back."""
        found = set[str]()
        waiting, seen = [node], set[ast.expr]()
        while waiting and len(seen) < 64:
            expr = waiting.pop()
            if expr in seen:
                continue
            seen.add(expr)
            if isinstance(expr, ast.Call):
                waiting.append(expr.func)
                continue
            if name := self.dotted(expr):
                found.add(name)
            while isinstance(expr, ast.Attribute):
                expr = expr.value
            if isinstance(expr, ast.Name):
                waiting += self._values.get(expr.id, [])[:_VALUES]
            elif isinstance(expr, ast.Call):
                waiting.append(expr)
        return frozenset(found)

    def parts(self, node: ast.AST) -> Iterator[ast.AST]:
        """Everything in an expression, and in what was assigned to the names in it."""
        waiting: list[tuple[ast.AST, int]] = [(node, 0)]
        seen = set[str]()
        while waiting:
            expr, depth = waiting.pop()
            for part in ast.walk(expr):
                yield part
                if isinstance(part, ast.Name) and part.id not in seen and depth < _STEPS:
                    seen.add(part.id)
                    waiting += [(value, depth + 1) for value in self._values.get(part.id, [])[:_VALUES]]

    def values(self, node: ast.expr) -> Iterator[ast.expr]:
        """The expression itself, or, where it is a name, whatever was assigned to it."""
        if isinstance(node, ast.Name) and node.id in self._values:
            yield from self._values[node.id]
        else:
            yield node

    def around(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Each enclosing node, innermost first, with its child that is ``node`` or contains it."""
        while (parent := self._parents.get(node)) is not None:
            yield parent, node
            node = parent

    @cached_property
    def _imported(self) -> tuple[str, ...]:
        names: list[str] = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.append(node.module)
        return tuple(names)

    def _meaning(self, name: str) -> str:
        for _ in range(_STEPS):
            first, dot, rest = name.partition(".")
            if first not in self._aliases or self._aliases[first].partition(".")[0] == first:
                return self._aliases.get(first, first) + dot + rest
            name = self._aliases[first] + dot + rest
        return name

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                self._aliases[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                self._aliases[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}".lstrip(".")
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    self._values[target.id].append(node.value)
                    plain = self.dotted(node.value)  # keras = tf.keras
                    if isinstance(node.value, ast.Attribute) and plain:
                        self._aliases.setdefault(target.id, plain)
        elif isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
            self._values[node.optional_vars.id].append(node.context_expr)


def called(call: ast.Call) -> str:
    """The last part of the called name: ``fit`` for ``self.model.fit()``."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
