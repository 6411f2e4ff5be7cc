"""Real trainers within walls: how much of the laptop their scripts, and other members, reach; one start each.

Some of the trainers were kept ready.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest

from core.supervisor import spawn
from core.trainer import walls as raising
from core.trainer.walls import problem_at_wall
from core.vocabulary import trainer_messages
from core.vocabulary.access import Grant
from core.vocabulary.trainer_messages import Enclosure, Seal
from core.vocabulary.wire import to_json
from core.walls import levels
from tests.core.supervisor.test_driver import is_gone, wait_gone
from tests.core.trainer.attended import Attended, free_ports, keys_for
from tests.core.walls import attacks
from tests.core.walls.laptop import laptop

needs_walls = pytest.mark.skipif(bool(levels.found().gaps), reason="the kernel refuses less")
FITS = """
import json, sys
import keras, numpy as np
from attacks import attack

class Attack(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch == 0:
            print("got", json.dumps(attack(json.loads(sys.argv[1]))), flush=True)

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.arange(64 * 4, dtype="float32").reshape(64, 4) / 256
model.fit(x, x.sum(1), epochs=3, batch_size=16, verbose=0, callbacks=[Attack()])
model.save("own.keras")
keras.models.load_model("own.keras")
print("trained", flush=True)
open(json.loads(sys.argv[1])["key"])
"""


def place(tmp_path: Path, name: str, home: str, port: int, calls: tuple[int, ...] | None) -> Enclosure:
    folders = [tmp_path / name / part for part in ("work", "tmp")]
    for folder in folders:
        folder.mkdir(parents=True)
    own = tuple(map(str, folders))
    return Enclosure(folders=own, home=own[1], user=home, port=port, calls=calls)


@pytest.mark.cluster
@pytest.mark.timeout(600)
@needs_walls
async def test_another_users_script_gets_nothing_trains_on_and_learns_which_wall_ended_it(
    tmp_path: Path,
) -> None:
    ports, keys = free_ports(2), keys_for(2)
    spec = {"chief": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{ports[1]}"]}
    with laptop(tmp_path) as targets:
        members = []
        for rank, role in enumerate(("chief", "worker")):
            walls = place(tmp_path, role, targets["home"], ports[rank], (ports[1 - rank],))
            folder = Path(walls.folders[0])
            (folder / "train.py").write_text(FITS)
            shutil.copy(attacks.__file__, folder)
            config = {"cluster": spec, "task": {"type": role, "index": 0}}
            members.append(
                Attended(
                    tmp_path / f"{role}.log",
                    task=f"{role}:0",
                    folder=str(folder),
                    script="train.py",
                    arguments=(json.dumps(targets),),
                    tf_config=json.dumps(config),
                    rank=rank,
                    shares=(1, 1),
                    exchange=keys[rank],
                    temporary=walls.home,
                    walls=walls,
                    child=spawn.spawn_warm() if role == "worker" else None,
                )
            )
        exits = await asyncio.gather(*(member.exit() for member in members))
    for member in members:
        (said,) = (line for line in member.text().splitlines() if line.startswith("got "))
        got = json.loads(said.removeprefix("got "))
        assert {name: each for name, each in got.items() if each != attacks.NONE} == {}
        assert "trained" in member.text()
        assert len(member.epochs()) == 3
    problems = [exit.problem for exit in exits if exit.problem is not None and exit.problem.code == "walls"]
    assert problems, exits
    assert "may not open ~/tandem/identity/key.pem on this laptop (train.py, line 18)" in problems[0].what


ACTS = """
import json, os, sys, time
import tensorflow as tf
from tensorflow.python.eager import context

targets, spec, me, victims = map(json.loads, sys.argv[1:])
job, _, index = me.partition(":")
if me == "chief:0":
    tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(spec), job_name="chief")
else:
    server = tf.distribute.Server(spec, job_name=job, task_index=int(index), protocol="grpc")

def on(victim, act):
    job, _, index = victim.partition(":")
    if me != "chief:0":
        with tf.Graph().as_default(), tf.compat.v1.Session("grpc://" + spec[job][int(index)]) as session:
            return session.run(act())
    with tf.device(f"/job:{job}/replica:0/task:{index}/device:CPU:0"):
        got = act()
        context.async_wait()  # an error of another member's device comes later
        return got.numpy() if hasattr(got, "numpy") else got

home, key = targets["home"], targets["key"]
for victim, folder in victims.items():
    tries = {
        "read own": lambda: tf.io.read_file(folder + "/own.txt"),
        "read key": lambda: tf.io.read_file(key),
        "read ssh": lambda: tf.io.read_file(home + "/.ssh/id_ed25519"),
        "read environment": lambda: tf.io.read_file(f"/proc/{targets['pid']}/environ"),
        "list home": lambda: tf.io.matching_files(home + "/*"),
        "write home": lambda: tf.io.write_file(home + "/.bashrc", "evil"),
        "write key": lambda: tf.io.write_file(key, "evil"),
    }
    for name, act in tries.items() if victim != me else ():
        try:
            got = on(victim, act)
            got = "nothing" if name == "list home" and not len(got) else got
        except tf.errors.OpError:
            got = "nothing"
        print(f"{victim} {name}: {got}", flush=True)
print("acted", flush=True)
while not os.path.exists(os.path.join(victims[me], "leave")):
    time.sleep(0.1)
"""
"""Actions of each member except ``worker:1``, which serves, against all others. Nobody leaves before all have
acted: TensorFlow waits for every member where one connects, and waiting for one that leaves is an error."""


@pytest.mark.cluster
@pytest.mark.timeout(600)
@needs_walls
async def test_another_member_reaches_only_the_runs_folder_by_tensorflows_runtime(
    tmp_path: Path,
) -> None:
    """As chief, as parameter server and as worker, for every member connected to it."""
    tasks = ("chief:0", "ps:0", "worker:0", "worker:1")
    keys, ports = keys_for(len(tasks)), free_ports(len(tasks))
    outside = tuple(f"127.0.0.1:{port}" for port in ports)
    inside = tuple(f"127.77.0.{rank + 1}:{port}" for rank, port in enumerate(ports))
    spec = {"chief": inside[:1], "ps": inside[1:2], "worker": inside[2:]}
    with laptop(tmp_path) as targets:
        walls = {task: place(tmp_path, task.replace(":", "-"), targets["home"], 0, None) for task in tasks}
        folders = {task: each.folders[0] for task, each in walls.items()}
        for folder in folders.values():
            Path(folder, "acts.py").write_text(ACTS)
            Path(folder, "own.txt").write_text("the run's")
        members = {}
        for rank, task in enumerate(tasks):
            role, _, index = task.partition(":")
            # Harmful nodes give their trainers another role, so that they run the script instead of serving.
            role = role if task in ("chief:0", "worker:1") else "harmful"
            members[task] = Attended(
                tmp_path / f"{rank}.log",
                task=task,
                folder=folders[task],
                script="acts.py",
                arguments=tuple(json.dumps(each) for each in (targets, spec, task, folders)),
                strategy="own",
                tf_config=json.dumps({"cluster": spec, "task": {"type": role, "index": int(index)}}),
                rank=rank,
                shares=(1,) * len(tasks),
                seal=Seal(keys=keys[rank], outside=outside, inside=inside),
                temporary=walls[task].home,
                walls=walls[task],
                child=spawn.spawn_warm() if task in ("chief:0", "ps:0") else None,
            )
        for task in tasks[:3]:
            await members[task].wait(partial(_has_acted, members[task]))
        exits = {}
        for task in tasks[:3]:
            Path(folders[task], "leave").touch()
            exits[task] = await members[task].exit()
        members["worker:1"].stop()
        await members["worker:1"].exit()
    assert members["worker:1"].of(trainer_messages.Met)
    for task, exit in exits.items():
        assert exit.reason == "finished", (task, exit, members[task].text("stderr"))
        said = dict(line.split(": ", 1) for line in members[task].text().splitlines() if ": " in line)
        for victim in tasks:
            if victim != task:
                assert said.pop(f"{victim} read own") == 'b"the run\'s"', (task, victim)
        assert set(said.values()) == {"nothing"} and len(said) == 18, (task, said)


def _has_acted(member: Attended) -> bool:
    return "acted" in member.text()


@pytest.mark.parametrize(
    ("level", "downloads", "begins"), [(2, True, 1), (7, True, 1), (7, False, 0), (0, True, 0)]
)
def test_downloads_go_through_a_proxy_on_every_level_as_no_name_is_resolved_inside(
    monkeypatch: pytest.MonkeyPatch, level: int, downloads: bool, begins: int
) -> None:
    monkeypatch.setattr(levels, "found", lambda: levels.Level(level, True))
    monkeypatch.setattr(raising, "apart", lambda work, *_: work())
    monkeypatch.setattr(raising, "_serve", lambda _, over: over.sendall(b'{"http_proxy":"here"}'))
    monkeypatch.setattr(os, "environ", {})
    found = Enclosure(folders=("/a",), home="/a", user="/b", port=1, calls=(1,), downloads=downloads)
    assert len(raising._begin_proxy(found)) == begins
    assert ("http_proxy" in os.environ) == bool(begins)
    for each in raising._LASTING:
        each.close()
    raising._LASTING.clear()


@pytest.mark.cluster
def test_an_error_is_blamed_on_a_wall_only_if_the_wall_caused_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tensorflow as tf

    monkeypatch.setattr(levels, "found", lambda: levels.Level(7, True))
    user, own = tmp_path.resolve() / "user", tmp_path.resolve() / "own"
    for folder in (user / "read", own):
        folder.mkdir(parents=True)
    theirs = user / "data.csv"
    theirs.write_text("1")
    opened = (Grant(asked="~/read", path=str(user / "read")),)
    walls = Enclosure(folders=(str(own),), home=str(own), user=str(user), opened=opened)
    refused = PermissionError(13, "Permission denied", str(theirs))
    for error in (
        refused,
        tf.errors.PermissionDeniedError(None, None, f"{theirs}; Permission denied"),
        FileNotFoundError(2, "No such file", str(own / "data.csv")),
        FileNotFoundError(f"{own / 'data.csv'} not found."),  # as np.loadtxt says it
        ValueError("cannot load"),
    ):
        if isinstance(error, ValueError):
            error.__cause__ = refused
        found = problem_at_wall(error, walls, " (a.py, line 3)")
        assert found is not None and found.code == "walls"
        assert found.what == "The script may not open ~/data.csv on this laptop (a.py, line 3)."
        assert "--open NAME=" in found.fix and "~/data.csv" in found.fix
    written = PermissionError(13, "Permission denied", str(user / "read/new"))
    assert problem_at_wall(written, walls, "") is not None, "it may read there alone"
    for not_ours in (
        PermissionError(13, "Permission denied", str(own / "locked")),
        FileNotFoundError(2, "No such file", str(user / "missing")),
        FileNotFoundError(2, "No such file", str(own / "missing")),
        PermissionError("the script's own words"),
        PermissionError(1, "Operation not permitted"),
    ):
        assert problem_at_wall(not_ours, walls, "") is None, not_ours
    unmet = OSError("urlopen error")
    unmet.reason = PermissionError(13, "Permission denied")  # type: ignore[attr-defined]
    found = problem_at_wall(unmet, walls, "")
    assert found is not None and "may not make this connection" in found.what
    monkeypatch.setattr(levels, "found", lambda: levels.Level(0, False))
    assert problem_at_wall(refused, walls, "") is None


def test_what_file_modes_forbid_is_not_blamed_on_a_wall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels, "found", lambda: levels.Level(7, True))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    walls = Enclosure(folders=("/own",), home="/own", user="/home/ben")
    locked = PermissionError(13, "Permission denied", str(tmp_path))
    assert problem_at_wall(locked, walls, "") is None


def test_a_connection_that_walls_refuse_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "found", lambda: levels.Level(7, True))

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    walls = Enclosure(folders=("/own",), home="/own", user="/home/ben")
    with pytest.raises(PermissionError) as refused:
        socket.create_connection(("127.0.0.1", 5432))
    found = problem_at_wall(refused.value, walls, "")
    assert found is not None and "this connection to 127.0.0.1:5432 from here" in found.what


CUTS_ITS_LEASH = """
import fcntl, os, subprocess, sys, time
from core.supervisor import parent_death
from core.trainer.walls import begin_watcher, raise_walls, read_walls
parent_death.arm(int(sys.argv[1]))
watcher = begin_watcher() if sys.argv[3] == "kept" else None
raise_walls(read_walls(sys.argv[2]), watcher)
fcntl.fcntl(int(sys.argv[1]), fcntl.F_SETFL, 0)
os.close(int(sys.argv[1]))
child = subprocess.Popen(["sleep", "3600"])
print(os.getpid(), child.pid, flush=True)
time.sleep(3600)
"""
STARTS_IT = """
import os, subprocess, sys
read, write = os.pipe()
words = [sys.executable, "-c", sys.argv[1], str(read), *sys.argv[2:]]
subprocess.Popen(words, pass_fds=[read], start_new_session=True).wait()
"""


def started(walls: Enclosure, how: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", STARTS_IT, CUTS_ITS_LEASH, to_json(walls).decode(), how]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


@pytest.mark.real
@needs_walls
@pytest.mark.parametrize("how", ["new", "kept"])
async def test_a_script_that_cuts_its_leash_still_ends_with_a_killed_node(tmp_path: Path, how: str) -> None:
    with started(place(tmp_path, "worker", "/nowhere", 1, ()), how) as node:
        assert node.stdout is not None
        pids = [int(word) for word in node.stdout.readline().split()]
        assert len(pids) == 2 and not any(is_gone(pid) for pid in pids)
        node.kill()
        for pid in pids:
            await wait_gone(pid)


def begun(words: list[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, start_new_session=True)


def in_group(pid: int, leader: int) -> bool:
    try:
        return os.getpgid(pid) == leader
    except ProcessLookupError:
        return False


GETS_NO_WALLS = """
from core.trainer.walls import begin_watcher
watcher = begin_watcher()
print("began", flush=True)
input()
watcher.close()
input()
"""


@pytest.mark.real
@needs_walls
async def test_the_watcher_of_a_trainer_that_gets_no_walls_ends() -> None:
    with begun([sys.executable, "-c", GETS_NO_WALLS]) as trainer:
        assert trainer.stdin is not None and trainer.stdout is not None
        assert trainer.stdout.readline() == "began\n"
        (watcher,) = (each for each in psutil.pids() if each != trainer.pid and in_group(each, trainer.pid))
        trainer.stdin.write("\n")
        trainer.stdin.flush()
        await wait_gone(watcher)
        assert trainer.poll() is None
