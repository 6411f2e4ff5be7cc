import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from app import __main__ as entry
from app.cli.exit_codes import ExitCode
from core.script.analysis import SUFFIXES
from core.supervisor.spawn import HIDDEN_ARGUMENT, PROBE_ARGUMENT, SEAL_ARGUMENT


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


@pytest.mark.parametrize(
    ("argv", "module", "function", "given", "code"),
    [
        ([HIDDEN_ARGUMENT, "--orders", "3"], "core.trainer.__main__", "run", ["--orders", "3"], 7),
        ([PROBE_ARGUMENT], "core.trainer.probe", "main", [PROBE_ARGUMENT], 0),
        ([SEAL_ARGUMENT], "core.trainer.sealed.namespace", "enter", [SEAL_ARGUMENT], 0),
    ],
)
def test_a_hidden_argument_makes_it_another_program(
    monkeypatch: pytest.MonkeyPatch, argv: list[str], module: str, function: str, given: list[str], code: int
) -> None:
    seen: list[list[str]] = []

    def stand_in(arguments: list[str] | None = None) -> int:
        seen.append(sys.argv[1:] if arguments is None else arguments)
        return 7

    monkeypatch.setitem(sys.modules, module, SimpleNamespace(**{function: stand_in}))
    monkeypatch.setattr(sys, "argv", ["tandem", *argv])
    assert entry.main() == code
    assert seen == [given]


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
