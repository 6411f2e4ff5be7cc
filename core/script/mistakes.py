"""Known mistakes in scripts, each with its line and its fix. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from core.script.loss_mistakes import loss_mistakes
from core.script.strategies import last_part
from core.script.syntax import Mistake, SourceTree, Usage, called
from core.script.tf_config_mistakes import tf_config_mistakes

KERAS_TUNER, UNKEPT = "keras-tuner", "batches-unkept"
"""Codes of mistakes that matter only where several laptops train one model."""
BATCHES = "train_on_batch"


def find_mistakes(sources: tuple[SourceTree, ...]) -> tuple[Mistake, ...]:
    """Mistakes possible in any script. They are heuristics: each names what it found, and none stops a
    script."""
    return (*_legacy_keras(sources), *_questions(sources), *_searches(sources))


def find_unkept(loops: Sequence[Usage]) -> Iterator[Mistake]:
    """The first call of ``train_on_batch``, to warn of the cost of losing a laptop there."""
    for loop in loops:
        if loop.what == BATCHES:
            yield Mistake(
                code=UNKEPT,
                path=loop.path,
                line=loop.line,
                what="train_on_batch keeps no checkpoints. A laptop that is lost in such a loop does not "
                "come back before its end, and if all of them are lost, the loop starts over.",
                fix="Train with model.fit where you can: it goes on from its newest checkpoint.",
            )
            return


def find_strategy_mistakes(
    sources: tuple[SourceTree, ...], strategies: tuple[Usage, ...]
) -> tuple[Mistake, ...]:
    """Mistakes in scripts that build their own strategy: heuristics, too."""
    names = {found.what for found in strategies}
    found: list[Mistake] = []
    for source in sources:
        found += tf_config_mistakes(source)
        found += _mirrored(source)
    found += loss_mistakes(sources, names)
    found += _no_scope(sources, strategies)
    found += _tpu(sources)
    return tuple(found)


def _legacy_keras(sources: tuple[SourceTree, ...]) -> Iterator[Mistake]:
    """The first import of tf_keras, or the switch that turns ``tf.keras`` into it."""
    for source in sources:
        for node in source.nodes:
            match node:
                case ast.Import(names=names) if any(_is_legacy(each.name) for each in names):
                    pass
                case ast.ImportFrom(module=str(module), level=0) if _is_legacy(module):
                    pass
                case ast.Constant(value="TF_USE_LEGACY_KERAS"):
                    pass
                case _:
                    continue
            yield Mistake(
                code="legacy-keras",
                path=source.path,
                line=node.lineno,
                what="The script uses tf_keras (Keras 2). Tandem can share only Keras 3 training.",
                fix="Use `import keras`, and remove tf_keras and TF_USE_LEGACY_KERAS from the script.",
            )
            return


def _is_legacy(module: str) -> bool:
    return module.partition(".")[0] == "tf_keras"


def _searches(sources: tuple[SourceTree, ...]) -> Iterator[Mistake]:
    """The first import of KerasTuner, which searches on each laptop separately."""
    for source in sources:
        for node in source.nodes:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if any(name.partition(".")[0] in ("keras_tuner", "kerastuner") for name in names):
                assert isinstance(node, ast.Import | ast.ImportFrom)
                yield Mistake(
                    code=KERAS_TUNER,
                    path=source.path,
                    line=node.lineno,
                    what="KerasTuner searches on each laptop separately, so the laptops of one run may train "
                    "different models.",
                    fix="Read the values from arguments and let Tandem try them, each on one laptop: tandem "
                    "sweep, or Try several values. As it is, train it on one laptop alone, or share out its "
                    "own trials without Tandem, by KERASTUNER_TUNER_ID.",
                )
                return


def _questions(sources: tuple[SourceTree, ...]) -> Iterator[Mistake]:
    """The first ``input()`` of the script: nobody can type an answer in a run."""
    for source in sources:
        for call in source.calls:
            if source.dotted(call.func) == "input":
                yield Mistake(
                    code="asks-for-input",
                    path=source.path,
                    line=call.lineno,
                    what="The script calls input(), but nobody can type an answer during a run.",
                    fix="Read the value from an argument instead: argparse or sys.argv.",
                )
                return


def _mirrored(source: SourceTree) -> Iterator[Mistake]:
    for call in source.calls:
        if last_part(source.dotted(call.func)) == "MirroredStrategy" and _takes_resolver(source, call):
            yield Mistake(
                code="mirrored-with-resolver",
                path=source.path,
                line=call.lineno,
                what="TensorFlow's MirroredStrategy does not accept a cluster resolver. In a run of "
                "several laptops Tandem leaves it out; elsewhere the script fails at this line.",
                fix="Write tf.distribute.MirroredStrategy().",
            )


def _takes_resolver(source: SourceTree, call: ast.Call) -> bool:
    if any(keyword.arg == "cluster_resolver" for keyword in call.keywords):
        return True
    return any(
        last_part(origin).endswith("ClusterResolver") or "resolver" in last_part(origin).lower()
        for argument in call.args
        for origin in source.origins(argument)
    )


def _no_scope(sources: tuple[SourceTree, ...], strategies: tuple[Usage, ...]) -> Iterator[Mistake]:
    if any(called(call) == "scope" for source in sources for call in source.calls):
        return
    for found in strategies:
        if found.what in ("MultiWorkerMirroredStrategy", "MirroredStrategy"):
            yield Mistake(
                code="strategy-without-scope",
                path=found.path,
                line=found.line,
                what=f"{found.what} is built, but its scope() is never entered: the model is not shared.",
                fix="Build and compile the model inside `with strategy.scope():`.",
            )
            return


def _tpu(sources: tuple[SourceTree, ...]) -> Iterator[Mistake]:
    """The first place that needs a TPU, in a script that does not handle its absence."""
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
                what=f"{called(call)} needs a TPU, and laptops have none: the script would fail here.",
                fix="Use tf.distribute.MultiWorkerMirroredStrategy(), or remove the strategy and let "
                "Tandem share the training.",
            )
            return
