"""The doctor's findings about the packages and the paired devices."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from core.doctor import software
from core.supervisor import spawn
from core.vocabulary import events as ev
from core.vocabulary.errors import Problem
from core.vocabulary.readings import Hardware
from tests.core.doctor.views import view
from tests.core.fake_node import HARDWARE, OTHER, VERSIONS, found, started


def test_the_pinned_versions_are_fine(tmp_path: Path) -> None:
    levels = [finding.level for finding in software.check_tensorflow(view(tmp_path), VERSIONS)]

    assert levels == ["ok", "ok"]
    assert software.check_python(view(tmp_path), VERSIONS).level == "ok"


def test_another_or_a_missing_package_is_named_with_the_command(tmp_path: Path) -> None:
    versions = replace(VERSIONS, tensorflow="2.20.1", keras="")

    tensorflow, keras = software.check_tensorflow(view(tmp_path), versions)

    assert (tensorflow.level, keras.level) == ("warning", "error")
    assert "2.20.1" in tensorflow.what
    assert "pip install 'keras==3.15.*'" in keras.fix


def test_a_python_without_tensorflow_is_an_error(tmp_path: Path) -> None:
    assert software.check_python(view(tmp_path), replace(VERSIONS, python="3.14")).level == "error"


def test_a_device_with_which_no_run_is_possible_says_why(tmp_path: Path) -> None:
    problem = Problem(
        code="versions-differ", what="Keras is 3.15.1 here and 3.14.0 on other.", fix="Install it."
    )
    paired = ev.DevicePaired(device=OTHER, name="other")
    linked = ev.LinkUp(
        device=OTHER,
        name="other",
        address="10.0.0.2:27600",
        versions=VERSIONS,
        hardware=HARDWARE,
        problem=problem,
    )

    (finding,) = software.check_peers(view(tmp_path, paired, linked))
    assert (finding.level, finding.code, finding.fix) == ("warning", "device-versions-differ", "Install it.")
    assert problem.what in finding.what

    (finding,) = software.check_peers(view(tmp_path, paired))
    assert finding.level == "ok"


def prints(text: str) -> list[str]:
    return [sys.executable, "-c", f"print('chatter'); print({text!r})"]


@pytest.mark.real
async def test_what_the_probe_prints_is_reported(tmp_path: Path) -> None:
    command = prints('["2.21.0", "3.15.1", ["NVIDIA Test"], 5.25]')

    finding = await software.check_loading(view(tmp_path), command=command)

    assert finding.level == "ok"
    assert "2.21.0" in finding.what and "NVIDIA Test" in finding.what and "5.2 s" in finding.what


def test_an_untested_system_is_reported(tmp_path: Path) -> None:
    assert software.check_system(view(tmp_path), "linux") is None
    finding = software.check_system(view(tmp_path), "win32")
    assert finding is not None and finding.level == "note" and "on Windows nobody has tried" in finding.what


@pytest.mark.real
async def test_a_gpu_that_tensorflow_does_not_find_is_noted(tmp_path: Path) -> None:
    hardware = Hardware(cpu="c", cores=1, memory_bytes=1, gpus=("NVIDIA Test",))
    seen = view(tmp_path, replace(started(), hardware=hardware))

    finding = await software.check_loading(seen, command=prints('["2.21.0", "3.15.1", [], 5.0]'))

    assert finding.code == "tensorflow-cpu"
    assert "and-cuda" in finding.fix


@pytest.mark.real
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise ImportError('no such library')", "ImportError: no such library"),
        ("import os; os.abort()", "status -6"),
        ("print('not json')", "status 0"),
    ],
)
async def test_a_package_that_does_not_load_is_reported_with_its_last_output(
    tmp_path: Path, code: str, words: str
) -> None:
    finding = await software.check_loading(view(tmp_path), command=[sys.executable, "-c", code])

    assert (finding.level, finding.code) == ("error", "tensorflow-broken")
    assert words in finding.what


@pytest.mark.real
async def test_a_load_that_never_ends_is_ended(tmp_path: Path) -> None:
    hangs = [sys.executable, "-c", "import time; time.sleep(600)"]

    finding = await software.check_loading(view(tmp_path), command=hangs, limit_s=0.05)

    assert finding.code == "tensorflow-slow"


@pytest.mark.cluster
async def test_the_real_tensorflow_loads(tmp_path: Path) -> None:
    finding = await software.check_loading(view(tmp_path))

    assert finding.code in ("tensorflow-loads", "tensorflow-cpu")
    assert "TensorFlow 2.21" in finding.what


class _Probe:
    """A child process that has given its output."""

    def __init__(self, said: str, complained: str = "", status: int = 0) -> None:
        self.said, self.complained, self.returncode = said.encode(), complained.encode(), status

    async def communicate(self) -> tuple[bytes, bytes]:
        return self.said, self.complained


class _Hanging:
    """A child process that is silent until killed."""

    def __init__(self) -> None:
        self.returncode: int | None = None
        self.waited = False

    async def communicate(self) -> tuple[bytes, bytes]:
        await asyncio.Event().wait()
        raise AssertionError

    def kill(self) -> None:
        self.returncode = -9

    async def wait(self) -> None:
        self.waited = True


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], list[tuple[tuple[str, ...], Any]]]:
    """Replaces the probe by a child; keeps the arguments it was started with."""
    started: list[tuple[tuple[str, ...], Any]] = []

    def put(made: object) -> list[tuple[tuple[str, ...], Any]]:
        async def start(*program: str, **options: Any) -> object:
            started.append((program, options))
            return made

        monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
        return started

    return put


Child = Callable[[object], list[tuple[tuple[str, ...], Any]]]


async def test_the_last_line_of_the_probe_is_what_counts(tmp_path: Path, child: Child) -> None:
    started = child(_Probe('chatter\n["2.21.0", "3.15.1", ["GPU one", "GPU two"], 5.25]\n'))
    finding = await software.check_loading(view(tmp_path))
    assert (finding.level, finding.code) == ("ok", "tensorflow-loads")
    assert finding.what == ("TensorFlow 2.21.0 with Keras 3.15.1 loads in 5.2 s and uses GPU one, GPU two.")
    program, options = started[0]
    assert list(program) == software.probe_command() and program[-1] == spawn.PROBE_ARGUMENT
    assert (options["cwd"] / "core").is_dir() and options["env"]["KERAS_BACKEND"] == "tensorflow"


@pytest.mark.parametrize(
    ("gpus", "code"),
    [(("NVIDIA Test",), "tensorflow-cpu"), (("Radeon",), "tensorflow-loads"), ((), "tensorflow-loads")],
)
async def test_only_an_nvidia_card_that_is_not_found_is_noted(
    tmp_path: Path, child: Child, gpus: tuple[str, ...], code: str
) -> None:
    child(_Probe('["2.21.0", "3.15.1", [], 5.0]'))
    seen = view(tmp_path, replace(started(), hardware=replace(HARDWARE, gpus=gpus)))
    finding = await software.check_loading(seen)
    assert finding.code == code
    assert finding.what.endswith("finds no GPU and uses the CPU.")
    assert ("and-cuda" in finding.fix) == (code == "tensorflow-cpu")


async def test_a_frozen_program_is_probed_and_mended_by_itself(
    tmp_path: Path, child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    ran = child(_Probe('["2.21.0", "3.15.1", [], 5.0]'))
    seen = view(tmp_path, replace(started(), hardware=replace(HARDWARE, gpus=("NVIDIA Test",))))
    finding = await software.check_loading(seen)
    assert finding.fix.startswith("This program computes on the CPU.")
    assert len(ran[0][0]) == 2 and ran[0][0][0] == sys.executable


@pytest.mark.parametrize(
    ("said", "complained", "status", "words"),
    [
        ("", "Traceback\nImportError: no such library\n", 1, "ImportError: no such library"),
        ("", "", -6, "it ended with status -6"),
        ("not json", "", 0, "it ended with status 0"),
        ('["2.21.0"]', "", 0, "it ended with status 0"),
    ],
)
async def test_a_failing_load_says_why(
    tmp_path: Path, child: Child, said: str, complained: str, status: int, words: str
) -> None:
    child(_Probe(said, complained, status))
    finding = await software.check_loading(view(tmp_path))
    assert (finding.level, finding.code) == ("error", "tensorflow-broken")
    assert finding.what == f"TensorFlow does not load: {words}" and finding.fix


async def test_a_probe_that_hangs_is_ended(tmp_path: Path, child: Child) -> None:
    hanging = _Hanging()
    child(hanging)
    finding = await software.check_loading(view(tmp_path), limit_s=0.01)
    assert (finding.level, finding.code) == ("error", "tensorflow-slow") and "0.01 s" in finding.what
    assert hanging.returncode == -9 and hanging.waited


def test_a_paired_device_is_connected_or_not_here_and_others_are_not_named(tmp_path: Path) -> None:
    assert software.check_peers(view(tmp_path, found())) == []
    paired = ev.DevicePaired(device=OTHER, name="other")
    linked = ev.LinkUp(device=OTHER, name="other", address="a:1", versions=VERSIONS, hardware=HARDWARE)
    (away,) = software.check_peers(view(tmp_path, paired))
    (here,) = software.check_peers(view(tmp_path, paired, linked))
    assert (away.what, here.what) == ("other is paired, but not here now.", "other is connected.")
