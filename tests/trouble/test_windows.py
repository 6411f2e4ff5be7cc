"""Trouble in an open window: a real one over a real node, used by mouse and keyboard, without a screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.history.history import History
from core.home import home as homes
from core.home import settings_file
from core.home.home import Home
from core.vocabulary import wire
from core.vocabulary.ids import RunId
from core.vocabulary.run_folder import METRICS, SUMMARY
from core.vocabulary.settings import Settings
from tests.app import world
from tests.core.fake_node import ME
from tests.lab.network import Network
from tests.tour.thing import Thing
from tests.trouble.test_disks import mount
from tests.trouble.window import TRAINED_S, OpenWindow

SETTINGS = Settings(name="anna", port=0, interfaces=("lo",), discovery=False, first_run_done=True)
RUNS = tuple(RunId(f"20261121-19120{9 - number}-9f3a01bc") for number in range(3))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """With three earlier runs, of ``first.py``, ``second.py`` and ``third.py``."""
    home = Home(tmp_path / "anna")
    homes.prepare(home)
    settings_file.write(home.settings, SETTINGS)
    history = History(home.runs)
    history.open()
    for number, (run, name) in enumerate(zip(RUNS, ("first", "second", "third"), strict=True)):
        folder = home.runs / run
        folder.mkdir(mode=0o700)
        entry = replace(world.entry(number, script=f"{name}.py", folder=str(folder)), run=run)
        history.put(entry)
        (folder / SUMMARY).write_bytes(wire.to_json(entry))
        steps = (world.progressed(ME, world.progress(step)) for step in range(30))
        (folder / METRICS).write_bytes(b"".join(wire.to_json(step) + b"\n" for step in steps))
    history.close()
    return home


def rows(things: list[Thing]) -> list[str]:
    """The table's runs, by script and arguments."""
    return [thing.text.split(" | ")[0] for thing in things if thing.kind == "row"]


@pytest.mark.real
def test_a_damaged_history_is_said_on_runs_and_what_is_whole_of_it_can_be_used(home: Home) -> None:
    half = b'{"run": "2026'
    (home.runs / RUNS[0] / SUMMARY).write_bytes(half)
    (home.runs / RUNS[1] / METRICS).write_bytes(b"\xff\x00 no numbers \n" * 100)

    with OpenWindow(home) as anna:
        anna.sees("screen-runs")
        anna.screen.press("ctrl+4")
        assert anna.until(rows, "the runs") == ["digits/second.py", "digits/third.py"]
        anna.reads("The list lacks one run, because summary.json is damaged")
        anna.reads(RUNS[0])

        anna.click_row("digits/second.py")
        anna.click("details")
        anna.reads("second.py made 184 steps, but the numbers of them in its folder are gone or damaged.")
        anna.reads("Its result is kept.")
        anna.reads("0.979")
        anna.click("back")
        anna.click_row("digits/third.py")
        anna.click("details")
        anna.reads("third.py, ")
        anna.gone("There are no numbers to plot.")
        anna.screen.press("ctrl+2")
        anna.click("example-digits")
        anna.until(_enabled("train"), "Train")

    assert (home.runs / RUNS[0] / SUMMARY).read_bytes() == half, "nobody throws away what can be repaired"


@pytest.mark.lab
@pytest.mark.cluster
@pytest.mark.timeout(900)
@pytest.mark.parametrize("trouble", ["read-only", "full"])
def test_a_home_whose_disk_refuses_while_the_window_is_open(
    network: Network, home: Home, tmp_path: Path, trouble: str
) -> None:
    """A setting and a run are refused or reported incomplete; once the disk works again, both succeed."""
    disk = tmp_path / "disk"
    mount(network, disk, "size=1g")
    network.do(0, "cp", "-a", str(home.folder), str(disk / "anna"))
    home, ballast = Home(disk / "anna"), disk / "anna" / "ballast"
    says = {"read-only": "Read-only file system", "full": "No space left on device"}[trouble]

    with OpenWindow(home, network.enter(0), beside=tmp_path) as anna:
        anna.sees("screen-train")
        anna.screen.press("ctrl+2")
        anna.click("example-digits")
        anna.until(_enabled("train"), "Train")
        anna.fill("arguments", "--epochs 1")
        anna.until(_enabled("train"), "Train")
        if trouble == "read-only":
            network.do(0, "mount", "--bind", str(disk), str(disk))
            network.do(0, "mount", "-o", "remount,bind,ro", str(disk))
        else:
            network.do(0, "mount", "-o", "remount,size=1m", str(disk))
            network.do(0, "sh", "-c", f"cat /dev/zero > {ballast} || true")

        anna.screen.press("ctrl+5")
        anna.fill("name", "dora")
        anna.screen.press("Return")
        anna.reads(says)
        anna.reads("Free some space or make the folder writable, then change the setting again.")
        anna.screen.press("ctrl+1")
        anna.reads("anna")

        anna.screen.press("ctrl+2")
        anna.click("train")
        anna.sees("new-run", limit_s=TRAINED_S)
        anna.reads("(digits.py, line ")
        anna.reads("Free some space, or make the script's output folder writable")
        anna.reads("has gaps")
        anna.reads("loss")
        anna.screen.press("ctrl+4")
        past = anna.until(rows, "the runs")
        assert past[-3:] == ["digits/first.py", "digits/second.py", "digits/third.py"], "what was there stays"

        if trouble == "read-only":
            network.do(0, "umount", str(disk))
        else:
            network.do(0, "rm", str(ballast))
            network.do(0, "mount", "-o", "remount,size=1g", str(disk))

        anna.screen.press("ctrl+5")
        anna.click("save-name")
        anna.gone("Free some space or make the folder writable, then change the setting again.")
        anna.screen.press("ctrl+1")
        anna.reads("dora")
        anna.screen.press("ctrl+2")
        anna.click("again")
        anna.until(_enabled("train"), "Train")
        anna.click("train")
        anna.reads("The script wrote digits.keras.", limit_s=TRAINED_S)
        anna.screen.press("ctrl+4")
        anna.until(lambda things: rows(things)[:1] == ["digits.py, --epochs 1"], "the new run")
        anna.until(lambda things: any("1 | Finished" in thing.text for thing in things), "its end")
        assert rows(anna.look()) == ["digits.py, --epochs 1"] * 2 + past[-3:], "the one that failed, too"


def _enabled(name: str) -> Callable[[list[Thing]], bool]:
    return lambda things: any(thing.name == name and thing.enabled for thing in things)
