"""The other laptop's user decides."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli.exit_codes import ExitCode
from core.vocabulary.commands import AnswerConsent, Quit, SetCodePolicy
from core.vocabulary.phases import Stopped
from tests.lab.laptops import Laptops, reason
from tests.trouble.command_line import begun, read_until

pytestmark = pytest.mark.real


@pytest.fixture
def script(laptops: Laptops, tmp_path: Path) -> Iterator[Path]:
    laptops.ben.do(SetCodePolicy(device=laptops.anna.device, policy="ask"))
    (tmp_path / "train.py").write_text(f"import keras\nkeras.Model().fit()\n# {tmp_path}\n")
    yield tmp_path / "train.py"
    laptops.ben.do(SetCodePolicy(device=laptops.anna.device, policy="always"))


def test_a_no_ends_it_and_nothing_came_there(laptops: Laptops, script: Path) -> None:
    with begun("run", script, "--home", laptops.anna.home.folder, "--with", "ben") as run:
        asked = laptops.ben.until(lambda state: state.consents, "ask its user")[0]
        laptops.ben.do(AnswerConsent(run=asked.run, decision="no"))
        out, _ = run.communicate(timeout=120)
    assert run.returncode == ExitCode.REFUSED
    assert "ben does not take part: its user did not allow the script to run there." in out
    assert reason(laptops.anna.ends(asked.run)).startswith("consent-refused")
    assert laptops.ben.state.consents == ()
    kept = laptops.ben.home.projects.rglob("train.py")
    assert not any(str(script.parent) in path.read_text() for path in kept)
    assert laptops.anna.trainers() == laptops.ben.trainers() == []


def test_ctrl_c_while_the_other_is_asked_takes_the_question_away(laptops: Laptops, script: Path) -> None:
    with begun("run", script, "--home", laptops.anna.home.folder, "--with", "ben") as run:
        asked = laptops.ben.until(lambda state: state.consents, "ask its user")[0]
        run.send_signal(signal.SIGINT)
        said = read_until(run, "Stopping")
        out, _ = run.communicate(timeout=120)
    assert run.returncode == ExitCode.INTERRUPTED, said + out
    assert "Traceback" not in out
    assert laptops.anna.ends(asked.run) == Stopped(by="anna")
    laptops.ben.until(lambda state: state.consents == (), "take the question away")


def test_a_laptop_that_is_closed_while_its_user_is_asked_is_named(laptops: Laptops, script: Path) -> None:
    with begun("run", script, "--home", laptops.anna.home.folder, "--with", "ben") as run:
        laptops.ben.until(lambda state: state.consents, "ask its user")
        laptops.ben.do(Quit())
        out, _ = run.communicate(timeout=120)
    assert run.returncode == ExitCode.FAILED
    assert "ben does not take part: Tandem was closed on ben." in out
    laptops.restart(1)
