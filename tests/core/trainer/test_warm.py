"""For its script, a trainer that was kept ready is the same as one started for the run."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.supervisor import spawn
from core.trainer import warm
from core.vocabulary.trainer_messages import Become, Enclosure
from core.walls import enclosure, levels
from tests.core.trainer.attended import Attended

needs_walls = pytest.mark.skipif(levels.found().walls == "none", reason="this system has no walls")
LOOKS = """
import json, os, sys, tempfile, time
import keras, numpy as np
from pathlib import Path

def statuses():
    for each in Path("/proc/self/task").iterdir():
        lines = dict(line.split(":", 1) for line in (each / "status").read_text().splitlines())
        yield [(each / "comm").read_text().strip(), lines["NoNewPrivs"].strip(), lines["Seccomp"].strip()]

fds = [os.path.join("/proc/self/fd", fd) for fd in os.listdir("/proc/self/fd")]
kinds = [os.readlink(fd).partition("[")[0] for fd in fds if os.path.lexists(fd)]
one = np.ones((400, 400), "float32")
print("saw", json.dumps({
    "environment": dict(os.environ),
    "began with": Path("/proc/self/environ").read_text(),
    "walled by its command": "--walls" in Path("/proc/self/cmdline").read_text(),
    "open": sorted(kinds),
    "temporary": tempfile.gettempdir(),
    "keras": [keras.src.backend.config.keras_home(), keras.config.floatx(), keras.config.image_data_format()],
    "layer": keras.layers.Dense(1).dtype_policy.name,
    "path": sys.path,
    "sum": float((one @ one).sum()),
    "threads": sorted(statuses()),
}), flush=True)
"""


def place(folder: Path) -> dict[str, Any]:
    """A trainer's orders about folders and walls."""
    work, home, user = (folder / name for name in ("work", "home", "user"))
    for each in (work, user / ".keras"):
        each.mkdir(parents=True)
    (work / "looks.py").write_text(LOOKS)
    (user / ".keras/keras.json").write_text('{"floatx": "float16", "image_data_format": "channels_first"}')
    walls = Enclosure(folders=(str(work), str(home)), home=str(home), user=str(user), port=1, calls=())
    return {"folder": str(work), "script": "looks.py", "temporary": str(home), "walls": walls}


async def seen(trainer: Attended) -> dict[str, Any]:
    exit = await trainer.exit()
    assert exit.reason == "finished", (exit, trainer.text("stderr"))
    (line,) = (line for line in trainer.text().splitlines() if line.startswith("saw "))
    found: dict[str, Any] = json.loads(line.removeprefix("saw "))
    return found


@pytest.mark.cluster
@pytest.mark.timeout(600)
@needs_walls
async def test_invariant_a_trainer_kept_ready_has_no_more_within_walls_than_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", "secret")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    for name in warm._COUNTS:
        monkeypatch.delenv(name, raising=False)
    places = {name: place(tmp_path / name) for name in ("new", "kept")}
    trainers = {
        "new": Attended(tmp_path / "new.log", **places["new"]),
        "kept": Attended(tmp_path / "kept.log", child=spawn.spawn_warm(), **places["kept"]),
    }
    found = await asyncio.gather(*map(seen, trainers.values()))
    new, kept = (
        json.loads(json.dumps(each).replace(str(tmp_path / name), "HERE"))
        for name, each in zip(trainers, found, strict=True)
    )
    began = [
        dict(each.partition("=")[::2] for each in of.pop("began with").split("\0")) for of in (new, kept)
    ]
    added = {spawn.ONE_THREAD: "1", "HOME": str(Path.home())}
    assert began[1].items() <= (began[0] | added).items(), "nothing of the user's in what it began with"
    assert new.pop("walled by its command") and not kept.pop("walled by its command")
    assert kept == new
    assert new["keras"] == ["HERE/home/.keras", "float16", "channels_first"] and new["layer"] == "float16"
    assert len(kept["threads"]) >= min(2, len(os.sched_getaffinity(0))), "NumPy has its threads again"
    assert {tuple(each[1:]) for each in kept["threads"]} == {("1", "2")}, "each is within the walls"


THREAD = """
import sys, threading
if "--warm" in sys.orig_argv:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
"""


@pytest.mark.cluster
@pytest.mark.timeout(600)
@needs_walls
async def test_invariant_with_a_second_thread_it_restarts_before_walls_are_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(THREAD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    child = spawn.spawn_warm()
    kept = await seen(Attended(tmp_path / "log", child=child, **place(tmp_path / "kept")))
    assert kept["walled by its command"], "it was started as any walled trainer is"
    assert kept["environment"]["HOME"] == str(tmp_path / "kept/home")
    assert {tuple(each[1:]) for each in kept["threads"]} == {("1", "2")}


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the process would have become."""
    found: list[Any] = []

    def become(path: str, words: list[str], variables: dict[str, str]) -> None:
        found.extend((words, variables))
        raise InterruptedError

    monkeypatch.setattr(os, "execve", become)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(os, "set_inheritable", lambda fd, on: found.append(fd))
    return found


def walled_begin(tmp_path: Path) -> Become:
    home = str(tmp_path)
    return Become(
        environment=spawn.packed({"HOME": home}),
        walls=Enclosure(folders=(home,), home=home, user="/nowhere"),
    )


@needs_walls
def test_invariant_an_open_file_within_walls_makes_it_restart(
    tmp_path: Path, executed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enclosure, "threads", lambda: 1)
    begin = walled_begin(tmp_path)
    others = warm._open_descriptors() - {0, 1, 2}
    assert warm.is_like_new(tuple(others))
    with (tmp_path / "file").open("w") as file:
        assert not warm.is_like_new(tuple(others))
        assert not warm.is_like_new((*others, 99_999))
        assert warm.is_like_new((*others, file.fileno()))
        with pytest.raises(InterruptedError):
            warm.become(begin, {}, (3, 4, 5))
    words, variables = executed[-2:]
    assert executed[:-2] == [3, 4, 5], "its channels are inherited"
    assert words[len(spawn.command()) :] == [
        *("--orders", "3", "--reports", "4", "--leash", "5"),
        *spawn.options(sealed=False, walls=begin.walls),
    ]
    assert variables == {"HOME": str(tmp_path)}


@needs_walls
def test_invariant_a_second_thread_makes_it_restart_within_walls_and_sealed(
    tmp_path: Path, executed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait, daemon=True)
    thread.start()
    monkeypatch.setattr(warm, "_open_descriptors", set)
    for begin in (walled_begin(tmp_path), Become(environment=(), sealed=True)):
        with pytest.raises(InterruptedError):
            warm.become(begin, {}, (3, 4, 5))
    over.set()
    thread.join()
    assert spawn.SEALED_ARGUMENT in executed[-2]


def test_an_unconfined_run_gets_its_environment_whatever_threads_and_files_there_are(
    executed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Loaded:
        """Stands for Keras' settings."""

    monkeypatch.setattr(importlib, "reload", lambda module: None)
    monkeypatch.setitem(sys.modules, "keras.src.backend.config", Loaded)
    monkeypatch.setattr(tempfile, "tempdir", "/of/then")
    os.environ.clear()
    os.environ.update(KEPT="1", LOADED="by a library", GONE="1")
    begin = Become(environment=spawn.packed({"KEPT": "2", "NEW": "a=b"}))
    warm.become(begin, {"KEPT": "1", "GONE": "1"}, ())
    assert os.environ == {"KEPT": "2", "NEW": "a=b", "LOADED": "by a library"}
    assert tempfile.tempdir is None and not executed


@pytest.mark.skipif(sys.platform != "linux", reason="NumPy's library is told on Linux")
@pytest.mark.parametrize(
    ("variables", "wanted"),
    [({}, 4), ({"OMP_NUM_THREADS": "2,1"}, 2), ({"OPENBLAS_NUM_THREADS": "3", "OMP_NUM_THREADS": "2"}, 3),
     ({"GOTO_NUM_THREADS": "9"}, 4), ({"OPENBLAS_NUM_THREADS": "few"}, 4)],
)  # fmt: skip
def test_numpy_gets_the_threads_that_it_would_have_started(
    executed: list[Any], monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], wanted: int
) -> None:
    told: list[int] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(4)))
    monkeypatch.setattr(warm, "_libraries", lambda: ["a", "b"])
    monkeypatch.setattr(warm, "_setter", {"a": told.append, "b": None}.get)
    os.environ.clear()
    os.environ[spawn.ONE_THREAD] = "1"
    start = warm._numpy_thread_starter()
    del os.environ[spawn.ONE_THREAD]
    os.environ.update(variables)
    assert start is not None and told == []
    start()
    assert told == [wanted]
    monkeypatch.setattr(warm, "_setter", {"a": None, "b": None}.get)
    os.environ[spawn.ONE_THREAD] = "1"
    assert warm._numpy_thread_starter() is None


def test_the_build_of_openblas_in_this_process_is_found() -> None:
    if "openblas" not in str(np.show_config(mode="dicts")) or sys.platform != "linux":
        pytest.skip("NumPy computes with another library here")
    assert [path for path in warm._libraries() if warm._setter(path)]
