"""Disks that are full or may only be read, as small mounts in a namespace: also root cannot write there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.cli.exit_codes import ExitCode
from core import home as homes
from core.answers import Runs
from core.commands import ListRuns
from core.home import Home
from core.run.phases import Finished
from core.settings import Settings
from tests.lab.agent import Agent
from tests.lab.laptops import digits
from tests.lab.network import RATE, Network, NoLab
from tests.trouble.command_line import tandem

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]


@pytest.fixture
def network() -> Iterator[Network]:
    try:
        with Network(1, RATE) as network:
            yield network
    except NoLab as refusal:
        pytest.skip(str(refusal))


def mount(network: Network, folder: Path, *options: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    network.do(0, "mount", "-t", "tmpfs", "-o", ",".join(("mode=700", *options)), "tmpfs", str(folder))


def test_a_home_on_a_disk_that_may_only_be_read_is_refused(network: Network, tmp_path: Path) -> None:
    mount(network, tmp_path / "home", "ro")
    code, said = tandem("agent", "--jsonl", "--home", tmp_path / "home", enter=network.enter(0))
    assert code == ExitCode.CANNOT_START, said
    assert "Read-only file system" in said and "name another folder with --home DIR" in said


def test_a_home_on_a_full_disk_is_refused(network: Network, tmp_path: Path) -> None:
    mount(network, tmp_path / "home", "size=4k", "nr_inodes=2")
    code, said = tandem("agent", "--jsonl", "--home", tmp_path / "home", enter=network.enter(0))
    assert code == ExitCode.CANNOT_START, said
    assert "No space left on device" in said and "free some space" in said


@pytest.mark.cluster
def test_a_disk_that_is_full_of_history_ends_no_training(network: Network, tmp_path: Path) -> None:
    home = Home(tmp_path / "anna")
    homes.prepare(home)
    mount(network, home.runs, "size=96k")
    settings = Settings(name="anna", port=0, interfaces=("lo",), discovery=False, first_run_done=True)
    with Agent(home, enter=network.enter(0), settings=settings) as anna:
        spec = digits(tmp_path / "digits", "--epochs", "6", others=())
        run = anna.train(replace(spec, solo=True))
        assert anna.ends(run) == Finished()
        assert network.do(0, "df", "--output=avail", str(home.runs)).split()[-1] == "0"

        (gaps,) = [each for each in anna.state.notices if each.code == "record-unwritten"]
        assert "disk is full" in gaps.what and "Free some space" in gaps.fix
        said = "\n".join(anna.run().members[anna.device].log["chief:0"])
        assert "The log chief-0.log cannot be written" in said
        assert "The history keeps no copy of what the script wrote beside itself" in said
        assert (tmp_path / "digits" / "digits.keras").stat().st_size > 10_000
        assert isinstance(anna.ask(ListRuns()), Runs)
    # Nor does it keep the next start from happening; with room again, nothing is lost.
    with Agent(home, enter=network.enter(0)) as anna:
        assert "free some space" in anna.refused(ListRuns()).fix
    network.do(0, "mount", "-o", "remount,size=8m", str(home.runs))
    with Agent(home, enter=network.enter(0)) as anna:
        kept = anna.ask(ListRuns())
        assert isinstance(kept, Runs) and [entry.run for entry in kept.runs] == [run]
