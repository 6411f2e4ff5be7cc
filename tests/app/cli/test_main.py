import argparse
from pathlib import Path

import pytest

from app.cli import command_line, devices
from app.cli import main as entry
from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen
from app.connection import CannotStart
from core.vocabulary.errors import TandemError
from tests.app.cli.scripted_node import PROBLEM


def run_as_devices(runs: command_line.Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = command_line.DECLARED[devices.devices.__name__]._replace(runs=runs)
    monkeypatch.setitem(command_line.DECLARED, "devices", declared)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (CannotStart.of(PROBLEM), ExitCode.CANNOT_START),
        (TandemError.of(PROBLEM), ExitCode.REFUSED),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
    ],
)
def test_every_failure_has_its_words_and_its_exit_code(
    failure: BaseException,
    code: ExitCode,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def fails(arguments: argparse.Namespace, screen: Screen) -> int:
        raise failure

    run_as_devices(fails, monkeypatch)
    assert entry.main(["devices"]) == code
    shown = capsys.readouterr().out
    assert "It did not work." in shown or "Interrupted." in shown


def test_a_mistake_of_our_own_shows_no_traceback_but_keeps_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async def fails(arguments: argparse.Namespace, screen: Screen) -> int:
        raise ZeroDivisionError("secret detail")

    run_as_devices(fails, monkeypatch)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert entry.main(["devices"]) == ExitCode.FAILED
    shown = capsys.readouterr()
    assert "Traceback" not in shown.out + shown.err
    (kept,) = tmp_path.iterdir()
    assert kept.name in shown.out.replace("\n", "")
    assert "secret detail" in kept.read_text()


def test_a_home_that_cannot_be_is_said_in_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["devices", "--json", "--home", "/dev/null/x"]) == ExitCode.CANNOT_START
    shown = capsys.readouterr().out
    assert shown.startswith('{"ok":false,"problem":{"code":"home-unusable"')
