"""Finds scripts that write TF_CONFIG themselves, where Tandem has set the right one. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from core.script.syntax import Mistake, SourceTree
from core.vocabulary.paths import shown

_ADDRESS = re.compile(r"localhost|127\.0\.0\.1|(\d{1,3}(\.\d{1,3}){3}|[A-Za-z][\w.-]*):\d{2,5}\b")
_LEAVE_IT = "Remove the line: Tandem sets the right TF_CONFIG on each laptop."


def tf_config_mistakes(source: SourceTree) -> Iterator[Mistake]:
    """TF_CONFIG that the script removes, overwrites, sets to fixed addresses, or writes as no JSON."""
    for line, value in _tf_config_writes(source):
        if value is None:
            yield Mistake(
                code="tf-config-removed",
                path=source.path,
                line=line,
                what="TF_CONFIG is removed, so the strategy cannot find the other laptops.",
                fix=_LEAVE_IT,
            )
            continue
        if any(not _is_json(source, text) for text in source.values(value)):
            yield Mistake(
                code="tf-config-not-json",
                path=source.path,
                line=line,
                what="TF_CONFIG is set to Python's text of a dict, not to JSON: TensorFlow cannot read it.",
                fix='Write os.environ["TF_CONFIG"] = json.dumps(config). Better still, remove the line: '
                "Tandem sets TF_CONFIG.",
            )
        parts = tuple(source.parts(value))
        address = next((match[0] for part in parts if (match := _address_in(part))), None)
        if address:
            yield Mistake(
                code="tf-config-fixed-address",
                path=source.path,
                line=line,
                what=f"TF_CONFIG is overwritten with a fixed address ({shown(address)}), which is wrong on "
                "the other laptop.",
                fix=_LEAVE_IT,
            )
        elif not any(_reads_tf_config(source, part) for part in parts):
            yield Mistake(
                code="tf-config-overwritten",
                path=source.path,
                line=line,
                what="TF_CONFIG, which Tandem has set for this laptop, is overwritten.",
                fix=_LEAVE_IT,
            )


def _tf_config_writes(source: SourceTree) -> Iterator[tuple[int, ast.expr | None]]:
    """Line and value of each write that replaces a set TF_CONFIG; None: it is removed."""
    for node in source.nodes:
        if isinstance(node, ast.Assign):
            written = [(target, node.value) for target in node.targets]
            for target, value in written:
                if _is_tf_config(source, target) and not _only_where_unset(source, node):
                    yield node.lineno, value
        elif isinstance(node, ast.Delete):
            if any(_is_tf_config(source, target) for target in node.targets):
                yield node.lineno, None
        elif isinstance(node, ast.Call) and not _only_where_unset(source, node):
            yield from _tf_config_calls(source, node)


def _tf_config_calls(source: SourceTree, call: ast.Call) -> Iterator[tuple[int, ast.expr | None]]:
    name = source.dotted(call.func)
    first = call.args[0] if call.args else None
    if name == "os.putenv" and _is_text(first, "TF_CONFIG") and len(call.args) > 1:
        yield call.lineno, call.args[1]
    elif name in ("os.environ.pop", "os.unsetenv") and _is_text(first, "TF_CONFIG"):
        yield call.lineno, None
    elif name == "os.environ.update":
        for keyword in call.keywords:
            if keyword.arg == "TF_CONFIG":
                yield call.lineno, keyword.value
        if isinstance(first, ast.Dict):
            for key, value in zip(first.keys, first.values, strict=True):
                if _is_text(key, "TF_CONFIG"):
                    yield call.lineno, value


def _is_tf_config(source: SourceTree, node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Subscript)
        and source.dotted(node.value) == "os.environ"
        and _is_text(node.slice, "TF_CONFIG")
    )


def _is_text(node: ast.AST | None, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def _only_where_unset(source: SourceTree, node: ast.AST) -> bool:
    """``if "TF_CONFIG" not in os.environ: …`` and the like: it never runs under Tandem."""
    for parent, child in source.around(node):
        if isinstance(parent, ast.If) and child is not parent.test:
            test = parent.test
            if not any(_is_text(part, "TF_CONFIG") for part in source.parts(test)):
                continue
            negative = any(isinstance(part, ast.NotIn | ast.Not | ast.Is) for part in ast.walk(test))
            if negative == (child in parent.body):
                return True
    return False


def _is_json(source: SourceTree, value: ast.expr) -> bool:
    """False only for values known not to be JSON: ``str(…)``, ``repr(…)``, ``f"{…}"``, a bare dict."""
    if isinstance(value, ast.Call):
        return source.dotted(value.func) not in ("str", "repr", "builtins.str")
    if isinstance(value, ast.JoinedStr):
        return not (len(value.values) == 1 and isinstance(value.values[0], ast.FormattedValue))
    return not isinstance(value, ast.Dict)


def _address_in(part: ast.AST) -> re.Match[str] | None:
    if isinstance(part, ast.Constant) and isinstance(part.value, str):
        return _ADDRESS.search(part.value)
    return None


def _reads_tf_config(source: SourceTree, part: ast.AST) -> bool:
    if isinstance(part, ast.Call) and part.args and _is_text(part.args[0], "TF_CONFIG"):
        return source.dotted(part.func) in ("os.environ.get", "os.getenv")
    return _is_tf_config(source, part)
