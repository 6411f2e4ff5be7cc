import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[5]
CONSTANTS = {
    "_aggregate_additional_loss": "private.ADDITIONAL_LOSS",
    "_should_eval": "private.SHOULD_VALIDATE",
    "_get_metrics_result_or_logs": "private.EPOCH_LOGS",
    "_compute_moments_sync": "private.SYNCHRONISED_MOMENTS",
    "_moments": "private.BATCH_MOMENTS",
}
"""Names that private_parts.py uses for these."""
QUIET = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}


def run(code_or_module: list[str]) -> str:
    return subprocess.run(
        [sys.executable, *code_or_module],
        cwd=ROOT,
        env={**os.environ, **QUIET},
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    ).stdout


@pytest.mark.cluster
def test_keras_private_parts_are_as_the_engine_knows_them() -> None:
    wrong = json.loads(run(["-m", "tests.core.trainer.exact.private_parts"]).splitlines()[-1])
    assert wrong == [], "This Keras is another; look through core/trainer/exact/keras/keras_private.py"


@pytest.mark.cluster
def test_another_release_of_keras_is_refused() -> None:
    code = (
        "from core.trainer.exact.keras.keras_private import check_release\n"
        "from core.vocabulary.errors import TandemError\n"
        "try:\n    check_release('3.16.0')\n"
        "except TandemError as error:\n    print(error)\n"
    )
    assert "installed is 3.16.0" in run(["-c", code])


def test_only_one_module_imports_keras_private_parts() -> None:
    users = []
    for path in (ROOT / "core").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if any(name.startswith("keras.src") for name in names):
                users.append(path.relative_to(ROOT).as_posix())
    assert set(users) == {"core/trainer/exact/keras/keras_private.py"}


HERE = ROOT / "core/trainer/exact/keras/keras_private.py"
PARTS = ROOT / "tests/core/trainer/exact/private_parts.py"
PRIVATE = re.compile(r"_[a-z]\w*")


def private_names(path: Path) -> Iterator[tuple[str, bool]]:
    """Private names that a module uses, as attributes or in strings; whether it is on ``self``, or a base of
    its class."""
    tree = ast.parse(path.read_text())
    pieces = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="os" | "atexit" | "sys")):
                pass  # the standard library's, and documented
            case ast.Attribute(attr=name, value=of) if PRIVATE.fullmatch(name):
                yield name, ast.unparse(of) in ("self", "cls", "super()")
            case ast.Constant(value=str(name)) if PRIVATE.fullmatch(name) and id(node) not in pieces:
                yield name, False


def own_names(path: Path) -> Iterator[str]:
    """Private names that a module defines: functions, classes, variables, attributes."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                yield name


def test_private_attributes_of_keras_are_touched_in_one_module() -> None:
    """A private name either belongs to ``self`` and is defined in core.trainer, or it is somebody else's,
    most likely Keras'. private_parts.py finds Keras' names on ``self``, as it can see Keras' classes."""
    others = [path for path in (ROOT / "core/trainer").rglob("*.py") if path != HERE]
    own = {name for path in others for name in own_names(path)}
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in others
        for name, on_self in private_names(path)
        if not on_self or name not in own
    }
    assert not wrong


def test_each_private_part_is_checked() -> None:
    """private_parts.py fails on a Keras in which one is missing or different."""
    guarded = PARTS.read_text()
    parts = {name for name, _ in private_names(HERE)} - {"_tandem_original"}
    assert len(parts) > 20
    unguarded = {name for name in parts if not re.search(rf"\b{name}\b", guarded)}
    assert unguarded <= set(CONSTANTS)
    assert all(constant in guarded for constant in CONSTANTS.values())
