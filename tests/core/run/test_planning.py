from __future__ import annotations

from pathlib import Path

import pytest

from core.run import planning
from core.vocabulary.answers import ScriptRead
from core.vocabulary.errors import TandemError
from core.vocabulary.plan import RunSpec
from tests.core.run.lan import project

OWN = "import tensorflow as tf\nstrategy = tf.distribute.experimental.ParameterServerStrategy(None)\n"
LOOP = "import tensorflow as tf\nwith tf.GradientTape() as tape:\n    pass\n"


def test_what_travels_and_how_it_trains_is_read(tmp_path: Path) -> None:
    read = planning.read_project(project(tmp_path / "somewhere" / "digits"))
    assert read.strategy == "managed"
    assert read.manifest.script == "train.py"
    assert len(read.manifest.files) == 2
    assert read.warnings == ()


def test_a_strategy_of_its_own_is_seen_and_the_user_can_overrule(tmp_path: Path) -> None:
    spec = project(tmp_path / "somewhere" / "own", OWN)
    read = planning.read_project(spec)
    assert (read.strategy, read.parameter_server) == ("own", True)
    assert planning.read_project(RunSpec(script=spec.script, strategy="managed")).strategy == "managed"


def test_a_script_that_would_share_nothing_is_run_with_a_warning(tmp_path: Path) -> None:
    spec = project(tmp_path / "somewhere" / "loop", LOOP)
    (warning,) = planning.read_project(spec).warnings
    assert "share nothing" in warning
    assert planning.read_project(RunSpec(script=spec.script, solo=True)).warnings == ()
    read = planning.read_script(Path(spec.script))
    assert isinstance(read, ScriptRead)
    assert read.mistakes[0].code == "script-shares-nothing"


def test_a_syntax_error_is_a_sentence(tmp_path: Path) -> None:
    spec = project(tmp_path / "somewhere" / "broken", "def (:\n")
    with pytest.raises(TandemError) as caught:
        planning.read_project(spec)
    assert "line 1" in caught.value.what
