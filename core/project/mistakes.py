"""Known mistakes in scripts that build their own strategy, each with its line and its mend. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from core.project.loss_mistakes import loss_mistakes
from core.project.strategies import last_part
from core.project.syntax import Mistake, Source, Usage, called
from core.project.tf_config_mistakes import tf_config_mistakes


def find_mistakes(sources: tuple[Source, ...], strategies: tuple[Usage, ...]) -> tuple[Mistake, ...]:
    """Heuristics: each names what it saw, and none keeps a script from running."""
    names = {found.what for found in strategies}
    found: list[Mistake] = []
    for source in sources:
        found += tf_config_mistakes(source)
        found += _mirrored(source)
    found += loss_mistakes(sources, names)
    found += _no_scope(sources, strategies)
    found += _tpu(sources)
    return tuple(found)


def _mirrored(source: Source) -> Iterator[Mistake]:
    for call in source.calls:
        if last_part(source.dotted(call.func)) == "MirroredStrategy" and _takes_resolver(source, call):
            yield Mistake(
                code="mirrored-with-resolver",
                path=source.path,
                line=call.lineno,
                what="MirroredStrategy is given a cluster resolver, and TensorFlow's takes none. In a run of "
                "several laptops Tandem leaves it out; elsewhere the script ends at this line.",
                fix="Write tf.distribute.MirroredStrategy().",
            )


def _takes_resolver(source: Source, call: ast.Call) -> bool:
    if any(keyword.arg == "cluster_resolver" for keyword in call.keywords):
        return True
    return any(
        last_part(origin).endswith("ClusterResolver") or "resolver" in last_part(origin).lower()
        for argument in call.args
        for origin in source.origins(argument)
    )


def _no_scope(sources: tuple[Source, ...], strategies: tuple[Usage, ...]) -> Iterator[Mistake]:
    if any(called(call) == "scope" for source in sources for call in source.calls):
        return
    for found in strategies:
        if found.what in ("MultiWorkerMirroredStrategy", "MirroredStrategy"):
            yield Mistake(
                code="strategy-without-scope",
                path=found.path,
                line=found.line,
                what=f"{found.what} is built, and its scope() is never entered: the model is not shared.",
                fix="Build and compile the model inside `with strategy.scope():`.",
            )
            return


def _tpu(sources: tuple[Source, ...]) -> Iterator[Mistake]:
    """The first place that needs a TPU, in a script that does not try what to do without."""
    for source in sources:
        calls = [
            call
            for call in source.calls
            if last_part(source.dotted(call.func)) in ("TPUStrategy", "TPUClusterResolver")
        ]
        if any(isinstance(parent, ast.Try) for call in calls for parent, _ in source.around(call)):
            return
        for call in sorted(calls, key=lambda call: call.lineno)[:1]:
            yield Mistake(
                code="tpu-needed",
                path=source.path,
                line=call.lineno,
                what=f"{called(call)} needs a TPU, and laptops have none: the script would end here.",
                fix="Use tf.distribute.MultiWorkerMirroredStrategy(), or take the strategy out and let "
                "Tandem share the training.",
            )
            return
