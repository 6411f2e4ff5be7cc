"""Finds hand-written training steps whose loss is not divided by the global batch. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from core.script.strategies import last_part
from core.script.syntax import Mistake, SourceTree, called

_SCALED_BY = re.compile(
    r"compute_average_loss|scale_loss_for_distribution|all_reduce|skip_gradients_aggreg\w*"
)
_DIVISOR = re.compile(r"(?i)global_?batch|num_?replicas|n_?replicas|num_replicas_in_sync|world_?size")


def loss_mistakes(sources: tuple[SourceTree, ...], names: set[str]) -> Iterator[Mistake]:
    """A loss averaged (or summed) over a replica's own rows, in a step for ``strategy.run``.

    The optimizer sums gradients over all replicas, so the loss must be divided by the global batch
    (TensorFlow's guide "Custom training with tf.distribute.Strategy").
    """
    synchronous = names - {"ParameterServerStrategy", "OneDeviceStrategy"}
    runs = any(_is_strategy_run(source, call) for source in sources for call in source.calls)
    if not synchronous or not runs or any(_is_scaled(node) for source in sources for node in source.nodes):
        return
    for source in sources:
        for node in source.nodes:
            if not isinstance(node, ast.With) or not any(_opens_tape(item) for item in node.items):
                continue
            line = next((line for statement in node.body if (line := _loss_line(statement))), None)
            if line:
                yield Mistake(
                    code="loss-not-scaled",
                    path=source.path,
                    line=line,
                    what="This loss covers only one replica's rows. The optimizer adds up the gradients "
                    "of all replicas, so with N of them each step is N times too large.",
                    fix="Make the loss with reduction=None and use tf.nn.compute_average_loss("
                    "per_example_loss, global_batch_size=GLOBAL_BATCH_SIZE).",
                )


def _is_strategy_run(source: SourceTree, call: ast.Call) -> bool:
    if called(call) not in ("run", "experimental_run_v2") or not isinstance(call.func, ast.Attribute):
        return False
    origins = source.origins(call.func.value)
    return any("strategy" in last_part(origin).lower() for origin in origins)


def _is_scaled(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute | ast.Name | ast.keyword):
        name = (
            node.attr
            if isinstance(node, ast.Attribute)
            else node.id
            if isinstance(node, ast.Name)
            else node.arg
        )
        return bool(name and _SCALED_BY.fullmatch(name))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        names = (getattr(part, "attr", getattr(part, "id", "")) for part in ast.walk(node.right))
        return any(_DIVISOR.search(name) for name in names)
    return False


def _opens_tape(item: ast.withitem) -> bool:
    return isinstance(item.context_expr, ast.Call) and called(item.context_expr) == "GradientTape"


def _loss_line(statement: ast.stmt) -> int | None:
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if "loss" in str(getattr(target, "id", getattr(target, "attr", ""))).lower():
                return statement.lineno
    return None
