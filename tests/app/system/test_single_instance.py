import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtNetwork import QLocalServer
from pytestqt.qtbot import QtBot

from app.system.single_instance import SingleInstance

NOT_FIRST = 7
SECOND = f"""
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from app.system.single_instance import SingleInstance
app = QCoreApplication([])
print("asks", flush=True)
sys.exit(0 if SingleInstance(Path(sys.argv[1])).claim("".join(sys.argv[2:])) else {NOT_FIRST})
"""


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rt")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


@pytest.fixture
def first(qapp: object, tmp_path: Path) -> Iterator[SingleInstance]:
    first = SingleInstance(tmp_path)
    assert first.claim()
    first.listen()
    yield first
    first.release()


@pytest.mark.real
def test_a_second_start_gives_its_script_to_the_first(
    qtbot: QtBot, first: SingleInstance, tmp_path: Path
) -> None:
    script = str(tmp_path / "mit Leer ünd.py")
    second = subprocess.Popen([sys.executable, "-c", SECOND, str(tmp_path), script], stdin=subprocess.DEVNULL)
    with qtbot.waitSignal(first.script_given, timeout=60_000) as given:
        pass
    assert second.wait(60) == NOT_FIRST
    assert given.args == [script]


@pytest.mark.real
def test_a_second_start_brings_the_first_to_the_front_and_ends(
    qtbot: QtBot, first: SingleInstance, tmp_path: Path
) -> None:
    second = subprocess.Popen([sys.executable, "-c", SECOND, str(tmp_path)], stdin=subprocess.DEVNULL)
    with qtbot.waitSignal(first.asked_to_front, timeout=60_000):
        pass
    assert second.wait(60) == NOT_FIRST


def test_another_home_has_a_window_of_its_own(first: SingleInstance, tmp_path: Path) -> None:
    other = SingleInstance(tmp_path / "other")
    assert other.claim()
    other.release()


def test_after_the_first_ended_the_next_is_first(qapp: object, tmp_path: Path) -> None:
    for _ in range(2):
        one = SingleInstance(tmp_path)
        assert one.claim()
        one.listen()
        one.release()


@pytest.mark.real
def test_what_a_crashed_window_left_is_no_hindrance(qapp: object, tmp_path: Path, runtime: Path) -> None:
    one = SingleInstance(tmp_path)
    Path(one._address).touch()
    # The lock of a process that is gone, as QLockFile writes it: process, program, host.
    (runtime / f"{Path(one._address).name}.lock").write_text("4194303\ntandem\n\n\n\n")
    assert one.claim()
    one.listen()
    assert one._server is not None
    one.release()


@pytest.mark.real
def test_a_second_start_waits_for_a_first_that_is_about_to_paint(
    qtbot: QtBot, qapp: object, tmp_path: Path
) -> None:
    first = SingleInstance(tmp_path)
    assert first.claim()
    second = subprocess.Popen(
        [sys.executable, "-c", SECOND, str(tmp_path)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    assert second.stdout is not None
    assert second.stdout.readline() == b"asks\n"
    with qtbot.waitSignal(first.asked_to_front, timeout=60_000):
        first.listen()
    assert second.wait(60) == NOT_FIRST
    second.stdout.close()
    first.release()


@pytest.mark.real
def test_a_first_window_that_does_not_answer_is_passed_over(first: SingleInstance, tmp_path: Path) -> None:
    # The first window runs on this thread, which waits here and cannot answer.
    assert SingleInstance(tmp_path, answer_limit_ms=200).claim(), "after four tries"


@pytest.mark.real
def test_a_long_folder_does_not_matter(qapp: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    one = SingleInstance(tmp_path)
    assert one.claim()
    one.listen()
    assert one._server is not None
    one.release()


def test_without_a_runtime_folder_one_of_our_own_is_used(
    qapp: object, runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(runtime))
    one = SingleInstance(tmp_path)
    assert one.claim()
    one.listen()
    assert isinstance(one._server, QLocalServer)
    folder = Path(one._address).parent
    assert folder.parent == runtime
    assert folder.stat().st_mode & 0o777 == 0o700
    one.release()
