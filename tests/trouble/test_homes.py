"""Homes that no node can use, or that were damaged: a sentence with its fix, and nobody gets in through
it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from app.cli.exit_codes import ExitCode
from core.home.home import Home
from core.vocabulary import events as ev
from core.vocabulary.answers import RunList
from core.vocabulary.commands import ListRuns
from core.vocabulary.run_folder import SUMMARY
from core.vocabulary.settings import Settings
from tests.lab.agent import Agent
from tests.lab.lab import is_linked, linked, pair
from tests.lab.laptops import Laptops
from tests.trouble.command_line import tandem

pytestmark = pytest.mark.real


def a_file_in_its_place(folder: Path) -> Path:
    (folder / "home").write_text("not a folder")
    return folder / "home"


def below_a_file(folder: Path) -> Path:
    return a_file_in_its_place(folder) / "tandem"


def where_nobody_can_write(folder: Path) -> Path:
    """Not even root."""
    return Path("/proc/tandem")


def with_other_things(folder: Path) -> Path:
    (folder / "letters.txt").write_text("dear anna")
    return folder


AGENT, DEVICES = ("agent", "--jsonl"), ("devices",)


@pytest.mark.parametrize(
    ("place", "subcommand"),
    [
        (a_file_in_its_place, AGENT),
        (below_a_file, AGENT),
        (where_nobody_can_write, DEVICES),
        (with_other_things, DEVICES),
    ],
)
def test_a_home_that_cannot_be_is_refused(
    tmp_path: Path, place: Callable[[Path], Path], subcommand: tuple[str, ...]
) -> None:
    home = place(tmp_path)
    code, said = tandem(*subcommand, "--home", home)
    assert code == ExitCode.CANNOT_START, said
    assert str(home) in said and "with --home DIR" in said
    assert "chmod" not in said


def test_a_key_that_others_can_read_is_refused_until_it_is_private(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    settings = Settings(name="dora", port=0, interfaces=("lo",), discovery=False)
    with Agent(home, settings=settings) as agent:
        device = agent.device
    key = home.identity / "key.pem"
    key.chmod(0o644)

    code, said = tandem("agent", "--jsonl", "--home", home.folder)

    assert code == ExitCode.CANNOT_START, said
    assert "chmod 600" in said and str(key) in said
    key.chmod(0o600)
    with Agent(home) as agent:
        assert agent.device == device


def test_a_home_in_use_names_its_process(laptops: Laptops) -> None:
    code, said = tandem("agent", "--jsonl", "--home", laptops.anna.home.folder)
    assert code == ExitCode.CANNOT_START, said
    assert str(laptops.anna.process.pid) in said


def notice(agent: Agent, code: str) -> str:
    """The agent's notice at its start."""
    problem = agent.until(
        lambda state: next((each for each in state.notices if each.code == code), None), f"tell of {code}"
    )
    assert problem.what and problem.fix
    return str(problem)


def test_a_damaged_list_of_devices_trusts_nobody(laptops: Laptops) -> None:
    laptops.anna.end()
    trust = laptops.anna.home.trust
    damaged = trust.read_bytes()[:-40]
    trust.write_bytes(damaged)
    since = len(laptops.ben.told)

    anna = laptops.restart(0)

    assert "no device is trusted" in notice(anna, "trust-corrupt")
    assert not any(device.paired for device in anna.state.devices.values())
    # ben still trusts anna, and is not let in.
    refused = laptops.ben.hears(ev.LinkDown, lambda event: event.problem.code == "link-refused", since=since)
    assert isinstance(refused.event, ev.LinkDown) and "pair the two again" in refused.event.problem.fix
    assert not is_linked(anna.state, laptops.ben.device)
    assert any(path.read_bytes() == damaged for path in trust.parent.glob("trust*")), (
        "the damaged file is kept"
    )
    assert laptops.ben.state.me is not None
    pair(anna, laptops.ben, laptops.ben.state.me.addresses[0])
    linked(anna, laptops.ben)


def test_a_damaged_summary_is_said_and_the_rest_of_the_history_is_there(laptops: Laptops) -> None:
    before = laptops.anna.ask(ListRuns())
    laptops.anna.end()
    damaged = laptops.anna.home.runs / "20260101-120000-9f3a01bc"
    damaged.mkdir()
    (damaged / SUMMARY).write_bytes(b"this is no summary" * 500)

    anna = laptops.restart(0)

    after = anna.ask(ListRuns())
    assert isinstance(before, RunList) and isinstance(after, RunList)
    assert [entry.run for entry in after.runs] == [entry.run for entry in before.runs]
    assert after.problem is not None
    assert after.problem.what == "The list lacks one run, because summary.json is damaged."
    assert (damaged / SUMMARY).is_file(), "nobody throws away what can be repaired"


def test_damaged_settings_are_kept_aside(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    settings = Settings(name="dora", port=0, interfaces=("lo",), discovery=False)
    with Agent(home, settings=settings):
        pass
    home.settings.write_text('{"port": "as you like"')
    with Agent(home) as agent:
        said = notice(agent, "settings-corrupt")
        assert "defaults are used" in said and "settings-corrupt-" in said
