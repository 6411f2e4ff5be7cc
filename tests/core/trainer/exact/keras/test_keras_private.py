import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[5]
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
    assert "here is 3.16.0" in run(["-c", code])


def test_only_one_module_imports_keras_private_parts() -> None:
    users = []
    for path in (ROOT / "core").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if any(name.startswith("keras.src") for name in names):
                users.append(path.relative_to(ROOT).as_posix())
    assert set(users) == {"core/trainer/exact/keras/keras_private.py"}
