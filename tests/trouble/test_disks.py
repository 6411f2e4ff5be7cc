"""Full and read-only disks, as small mounts in a namespace: even root cannot write there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.cli.exit_codes import ExitCode
from core.home import home as homes
from core.home.home import Home
from core.vocabulary.answers import RunList
from core.vocabulary.commands import ChangeSettings, ListRuns
from core.vocabulary.phases import Finished
from core.vocabulary.settings import Settings, SettingsChange
from tests.app.test_desktop import LOOKING, WHOLE
from tests.lab.agent import Agent
from tests.lab.laptops import digits
from tests.lab.network import Network
from tests.trouble.command_line import LIMIT_S, ROOT, tandem

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]


def mount(network: Network, folder: Path, *options: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    network.do(0, "mount", "-t", "tmpfs", "-o", ",".join(("mode=700", *options)), "tmpfs", str(folder))


def test_a_home_on_a_disk_that_may_only_be_read_is_refused(network: Network, tmp_path: Path) -> None:
    mount(network, tmp_path / "home", "ro")
    code, said = tandem("agent", "--jsonl", "--home", tmp_path / "home", enter=network.enter(0))
    assert code == ExitCode.CANNOT_START, said
    assert "Read-only file system" in said and "name another folder with --home DIR" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [(("ro",), "Read-only file system"), (("size=4k", "nr_inodes=2"), "No space left on device")],
    ids=["read-only", "full"],
)
def test_a_window_on_such_a_home_says_so_on_a_page_of_its_own(
    network: Network, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    home, runtime = tmp_path / "home", tmp_path / "run"
    runtime.mkdir(mode=0o700)
    mount(network, home, *options)
    ended = subprocess.run(
        [*network.enter(0), sys.executable, "-c", WHOLE + LOOKING, str(home)],
        cwd=ROOT,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", "XDG_RUNTIME_DIR": str(runtime)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert told["problem"] == "home-unusable", ended.stderr
    assert said in told["what"]
    assert told["fix"]
    assert "Traceback" not in ended.stderr


def test_a_home_on_a_full_disk_is_refused(network: Network, tmp_path: Path) -> None:
    mount(network, tmp_path / "home", "size=4k", "nr_inodes=2")
    code, said = tandem("agent", "--jsonl", "--home", tmp_path / "home", enter=network.enter(0))
    assert code == ExitCode.CANNOT_START, said
    assert "No space left on device" in said and "free some space" in said


def test_a_home_that_turns_read_only_refuses_what_it_cannot_keep_and_stays_as_it_was(
    network: Network, tmp_path: Path
) -> None:
    home = Home(tmp_path / "anna")
    mount(network, home.folder)
    settings = Settings(name="anna", port=0, interfaces=("lo",), discovery=False, first_run_done=True)
    with Agent(home, enter=network.enter(0), settings=settings) as anna:
        network.do(0, "mount", "--bind", str(home.folder), str(home.folder))
        network.do(0, "mount", "-o", "remount,bind,ro", str(home.folder))
        assert anna.state.me is not None
        before = anna.state.me.name
        problem = anna.refused(ChangeSettings(change=SettingsChange(name="dora")))
        assert "Read-only file system" in str(problem) and problem.fix
        assert anna.state.me is not None and anna.state.me.name == before
        network.do(0, "umount", str(home.folder))
        anna.do(ChangeSettings(change=SettingsChange(name="dora")))


@pytest.mark.cluster
@pytest.mark.complete
def test_a_disk_that_is_full_of_history_ends_no_training(network: Network, tmp_path: Path) -> None:
    home = Home(tmp_path / "anna")
    homes.prepare(home)
    mount(network, home.runs, "size=48k")
    settings = Settings(name="anna", port=0, interfaces=("lo",), discovery=False, first_run_done=True)
    with Agent(home, enter=network.enter(0), settings=settings) as anna:
        spec = digits(tmp_path / "digits", "--epochs", "60", others=())
        run = anna.train(replace(spec, solo=True))
        assert anna.ends(run) == Finished()
        assert int(network.do(0, "df", "--output=avail", str(home.runs)).split()[-1]) <= 8, "it is full"
        (gaps,) = [each for each in anna.state.notices if each.code == "record-unwritten"]
        assert "No space left on device" in gaps.what and "Free some space" in gaps.fix
        said = "\n".join(anna.run().members[anna.device].log["chief:0"])
        assert "The log chief-0.log cannot be written" in said
        assert "The history keeps no copy of what the script wrote beside itself" in said
        assert (tmp_path / "digits" / "digits.keras").stat().st_size > 10_000
        assert isinstance(anna.ask(ListRuns()), RunList)
    # It prevents neither the next start nor the list of runs.
    for room in ("48k", "8m"):
        network.do(0, "mount", "-o", f"remount,size={room}", str(home.runs))
        with Agent(home, enter=network.enter(0)) as anna:
            kept = anna.ask(ListRuns())
            assert isinstance(kept, RunList) and [entry.run for entry in kept.runs] == [run]
