"""Tab in the shell, by argcomplete's protocol: the line in the environment, the answer on descriptor 8."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.home import trust, trust_file
from core.home.certificate import device_id
from core.home.home import Home
from core.home.trust import TrustedPeer, TrustStore
from core.vocabulary.run_folder import SUMMARY
from tests.core.certificates import device_certificate

SEPARATOR = "\n"
HEAVY = ("PySide6", "shiboken6", "tensorflow", "keras", "zeroconf", "numpy")
RUNS = ("20261121-191204-9f3a01bc", "20261122-080000-1c2d3e4f")


posix = pytest.mark.skipif(os.name != "posix", reason="descriptor 8 is how a POSIX shell is answered")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """anna and ben are paired; there are two runs, and a folder that is not one."""
    made = Home(tmp_path / "home")
    made.folder.mkdir(mode=0o700)
    store = TrustStore(device_id(device_certificate(1)))
    for number, name in ((2, "anna"), (3, "ben\x1b[2J")):
        peer = TrustedPeer(cert_der=device_certificate(number), name_at_pairing=name, paired_at=1.0)
        store = trust.add(store, peer)
    trust_file.save(made.folder, store)
    for run in RUNS:
        (made.runs / run).mkdir(parents=True)
        (made.runs / run / SUMMARY).write_text("{}")
    (made.runs / "something-else").mkdir()
    return made


def ask(line: str, home: Home, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Press Tab at the end of ``line``."""
    environment = {
        **os.environ,
        "TANDEM_HOME": str(home.folder),
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": SEPARATOR,
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    python = [sys.executable, *options, "-m", "app"]
    # A shell is needed: only it can name descriptor 8 for its child.
    command = ["sh", "-c", 'out="$1"; shift; exec "$@" 8>"$out" 9>/dev/null', "sh", str(out), *python]
    return subprocess.run(
        command,
        env=environment,
        check=True,
        timeout=120,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def completions(line: str, home: Home, tmp_path: Path) -> list[str]:
    out = tmp_path / "answer"
    ask(line, home, out)
    return [each.strip() for each in out.read_text().split(SEPARATOR) if each.strip()]


@pytest.mark.real
@posix
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tandem res", ["resume"]),
        ("tandem run", ["run", "runs"]),
        ("tandem forget ", ["anna", "ben"]),
        ("tandem forget a", ["anna"]),
        ("tandem run train.py --with anna,", ["anna,ben"]),
        ("tandem run train.py --wire b", ["bf16"]),
        ("tandem run train.py --role ", ["me=", "anna=", "ben="]),
        ("tandem resume ", [RUNS[1], RUNS[0]]),
        ("tandem runs 20261122", [RUNS[1]]),
        ("tandem agent --allow b", ["ben"]),
    ],
)
def test_what_may_come_next(line: str, expected: list[str], home: Home, tmp_path: Path) -> None:
    found = completions(line, home, tmp_path)
    assert [each for each in found if not each.startswith("-")] == expected


@pytest.mark.real
@posix
def test_options_are_completed(home: Home, tmp_path: Path) -> None:
    assert "--seed" in completions("tandem run train.py --s", home, tmp_path)


@pytest.mark.real
@posix
def test_it_loads_nothing_heavy_opens_no_window_and_changes_nothing(home: Home, tmp_path: Path) -> None:
    """Loading is nearly all of Tab's time."""
    before = sorted(path for path in home.folder.rglob("*"))
    said = ask("tandem forget ", home, tmp_path / "answer", "-X", "importtime").stderr
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in said.splitlines()}
    assert "argparse" in loaded
    assert not loaded.intersection(HEAVY)
    assert sorted(path for path in home.folder.rglob("*")) == before


@pytest.mark.real
@posix
def test_a_damaged_home_completes_nothing_and_stays_as_it_is(home: Home, tmp_path: Path) -> None:
    home.trust.write_text("no JSON")
    assert all(each.startswith("-") for each in completions("tandem forget ", home, tmp_path))
    assert home.trust.read_text() == "no JSON"


def test_the_installed_script_says_that_it_completes() -> None:
    """argcomplete's global completion looks for this at the beginning of the script's module."""
    from tandem_laptops import start

    assert "PYTHON_ARGCOMPLETE_OK" in Path(start.__file__).read_text(encoding="utf-8")[:1024]
