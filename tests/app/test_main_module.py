import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app import __main__ as entry
from app.cli.exit_codes import ExitCode
from core.project.script import SUFFIXES
from core.supervisor.spawn import HIDDEN_ARGUMENT, PROBE_ARGUMENT, SEAL_ARGUMENT, TENSORBOARD_ARGUMENT


@pytest.mark.parametrize(
    ("argv", "window"),
    [
        ([], True),
        (["--home", "/x"], True),
        (["--home=/x"], True),
        (["devices"], False),
        (["--help"], False),
        (["--home", "/x", "devices"], False),
        (["/home/anna/train.py"], True),
        (["notebook.ipynb"], True),
        (["--home", "/x", "train.py"], True),
        (["--home=/x", "train.py"], True),
        (["run", "train.py"], False),
        (["train.py", "--solo"], False),
    ],
)
def test_the_window_opens_where_no_subcommand_is_given(argv: list[str], window: bool) -> None:
    assert entry.wants_window(argv) is window


def test_the_window_opens_what_the_core_takes_for_scripts() -> None:
    assert entry.SCRIPTS == SUFFIXES


def test_a_missing_window_is_said_and_what_works_without(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert entry.main([], window="app.no_such_window") == ExitCode.CANNOT_START
    assert "tandem --help" in capsys.readouterr().err


def test_the_hidden_argument_becomes_the_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    class Trainer:
        @staticmethod
        def run(argv: list[str]) -> int:
            seen.append(argv)
            return 7

    monkeypatch.setitem(sys.modules, "core.trainer.__main__", Trainer)
    assert entry.main([HIDDEN_ARGUMENT, "--orders", "3"]) == 7
    assert seen == [["--orders", "3"]]


def test_the_hidden_argument_becomes_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Probe:
        @staticmethod
        def main() -> None:
            seen.append("probed")

    monkeypatch.setitem(sys.modules, "core.trainer.probe", Probe)
    assert entry.main([PROBE_ARGUMENT]) == 0
    assert seen == ["probed"]


def test_the_hidden_argument_tries_to_enter_a_network_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Namespace:
        @staticmethod
        def enter() -> None:
            seen.append("entered")

    monkeypatch.setitem(sys.modules, "core.trainer.sealed.namespace", Namespace)
    assert entry.main([SEAL_ARGUMENT]) == 0
    assert seen == ["entered"]


def test_the_hidden_argument_becomes_tensorboard_with_its_own_arguments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[list[str]] = []

    class TensorBoard:
        @staticmethod
        def run_main() -> None:
            seen.append(sys.argv[1:])

    monkeypatch.setitem(sys.modules, "tensorboard.main", TensorBoard)
    monkeypatch.setattr(sys, "argv", ["tandem", TENSORBOARD_ARGUMENT, "--logdir", "/x"])
    assert entry.main() == 0
    assert seen == [["--logdir", "/x"]]


@pytest.mark.real
def test_a_subcommand_imports_no_window_and_no_tensorflow(tmp_path: Path) -> None:
    program = (
        "import sys; from app.__main__ import main; "
        f"code = main(['devices', '--json', '--wait', '0', '--home', {str(tmp_path / 'home')!r}]); "
        "heavy = {'PySide6', 'pyqtgraph', 'tensorflow', 'keras'} & set(sys.modules); "
        "import json; print(json.dumps([code, sorted(heavy)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )
    assert done.returncode == 0, done.stderr
    told, last = done.stdout.splitlines()
    assert json.loads(last) == [0, []]
    assert json.loads(told)["me"]["device"]
