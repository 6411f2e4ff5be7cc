"""What the doctor says of the packages and of the paired devices."""

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.doctor import software
from core.vocabulary import events as ev
from core.vocabulary.errors import Problem
from core.vocabulary.readings import Hardware
from tests.core.doctor.views import view
from tests.core.fake_node import HARDWARE, OTHER, VERSIONS, started


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
async def test_what_the_probe_prints_is_told(tmp_path: Path) -> None:
    command = prints('["2.21.0", "3.15.1", ["NVIDIA Test"], 5.25]')

    finding = await software.check_loading(view(tmp_path), command=command)

    assert finding.level == "ok"
    assert "2.21.0" in finding.what and "NVIDIA Test" in finding.what and "5.2 s" in finding.what


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
async def test_a_package_that_does_not_load_says_its_last_words(
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
