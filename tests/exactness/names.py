"""The names of the scenarios, read from their source: pytest's process imports no TensorFlow."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.exactness.expected import Named
from tests.exactness.script_names import SCRIPTS


def _found() -> dict[str, Named]:
    found = {}
    for path in sorted((Path(__file__).parent / "scenarios").glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "scenario":
                    options = {word.arg: ast.literal_eval(word.value) for word in mark.keywords if word.arg}
                    found[node.name] = Named(**options)
    return found


SCENARIOS = {**_found(), **SCRIPTS}
EVERY = tuple(name for name, named in SCENARIOS.items() if not named.once)
CORE = tuple(name for name in EVERY if SCENARIOS[name].core)
ONCE = tuple(name for name, named in SCENARIOS.items() if named.once)
NOT_FOR_ONE_ROW = ("mixed_precision",)
"""The gradient of a single row may be more than float16 holds, where the mean of all rows is not: one process
trains by a step that members then leave out, as a LossScaleOptimizer does."""

BY_TENSORFLOW = (
    "batch_normalisation_plain",
    "batch_normalisation_synchronised",
    "ema",
    "embedding",
    "evaluate",
    "gradient_accumulation",
    "loss_scale_with_an_overflow",
    "masks",
    "predict_in_order",
    "train_on_batch",
    "two_optimizers",
    "user_written",
)
"""Run by TensorFlow's collectives, too: each needs something else of whoever adds up for the members."""
THREE_BY_TENSORFLOW = (
    "batch_normalisation_plain",
    "embedding",
    "last_batch_of_one_row",
    "loss_scale_with_an_overflow",
    "masks",
)
