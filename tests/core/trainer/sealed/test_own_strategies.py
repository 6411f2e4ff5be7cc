"""Scripts that need TensorFlow's own runtime, in real sealed trainers on one machine."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.supervisor import spawn
from core.vocabulary import trainer_messages
from core.vocabulary.trainer_messages import Seal
from tests.core.supervisor.test_driver import wait_gone
from tests.core.trainer.attended import Attended, free_ports, keys_for
from tests.core.trainer.sealed.test_proxy import serving

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
EXAMPLES = Path(__file__).parents[4] / "resources/examples/strategies"


def sealed(
    tmp_path: Path,
    roles: tuple[str, ...],
    *,
    downloads: bool = False,
    **train: Any,
) -> dict[str, Attended]:
    """A trainer for each of ``roles``, in rank order."""
    places = [f"127.0.0.1:{port}" for port in free_ports(len(roles))]
    inside = [f"127.77.0.{rank + 1}:{port.partition(':')[2]}" for rank, port in enumerate(places)]
    spec: dict[str, list[str]] = {}
    for role, place in zip(roles, inside, strict=True):
        spec.setdefault(role, []).append(place)
    found = {}
    for rank, (role, keys) in enumerate(zip(roles, keys_for(len(roles)), strict=True)):
        task = {"type": role, "index": spec[role].index(inside[rank])}
        name = f"{role}:{task['index']}"
        found[name] = Attended(
            tmp_path / f"{role}-{rank}.log",
            task=name,
            strategy="own",
            tf_config=json.dumps({"cluster": spec, "task": task}),
            rank=rank,
            shares=(1,) * len(roles),
            seal=Seal(keys=keys, outside=tuple(places), inside=tuple(inside), downloads=downloads),
            **train,
        )
    return found


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(shutil.copytree(EXAMPLES, tmp_path / "project"))


async def test_a_users_strategy_class_distributes_data_with_and_without_sharding(tmp_path: Path) -> None:
    trainers = sealed(tmp_path, ("chief", "worker"), script="own_class.py")
    exits = await asyncio.gather(*(trainer.exit() for trainer in trainers.values()))
    chief, worker = trainers.values()
    assert [exit.reason for exit in exits] == ["finished", "finished"], (exits, chief.text("stderr"))
    assert all(exit.shared for exit in exits)
    assert chief.of(trainer_messages.Met) == [trainer_messages.Met(strategy="Counting", replicas=2)]
    told = [_told(trainer.text()) for trainer in (chief, worker)]
    rows = [{int(row) for row in each["DATA rows"]} for each in told]
    assert rows[0] | rows[1] == set(range(16))
    assert not rows[0] & rows[1]
    assert all([int(row) for row in each["OFF rows"]] == [*range(16)] for each in told)
    assert told[0]["OFF losses"] == told[1]["OFF losses"], "members see the same loss and weight"
    assert told[0]["OFF losses"][-2:] == ["runs", "6"], "two steps of halved data, four of whole"


def _told(text: str) -> dict[str, list[str]]:
    """Lines by their first two words."""
    lines = [line.split() for line in text.splitlines() if line.startswith(("DATA", "OFF"))]
    return {f"{line[0]} {line[1]}": line[2:] for line in lines}


async def test_a_multi_worker_loop_meets_trains_and_ends_through_relays(tmp_path: Path, folder: str) -> None:
    trainers = sealed(
        tmp_path,
        ("chief", "worker"),
        folder=folder,
        script="multi_worker_loop.py",
        arguments=("--epochs", "2"),
    )
    exits = await asyncio.gather(*(trainer.exit() for trainer in trainers.values()))
    assert [exit.reason for exit in exits] == ["finished", "finished"], (
        exits,
        trainers["chief:0"].text("stderr"),
    )
    assert all(exit.shared for exit in exits)
    for trainer in trainers.values():
        assert trainer.of(trainer_messages.Met) == [
            trainer_messages.Met(strategy="MultiWorkerMirroredStrategy", replicas=2)
        ]
        assert "epoch 2/2: loss" in trainer.text()
        assert "in a network of its own" in " ".join(said.words for said in trainer.of(trainer_messages.Said))
    assert trainers["chief:0"].text() == trainers["worker:0"].text()


async def test_parameter_servers_serve_the_chief_through_relays(tmp_path: Path, folder: str) -> None:
    trainers = sealed(
        tmp_path,
        ("chief", "worker", "ps"),
        folder=folder,
        script="parameter_server.py",
        arguments=("--epochs", "2"),
    )
    chief = trainers.pop("chief:0")
    exit = await chief.exit()
    assert exit.reason == "finished", (exit, chief.text("stderr"))
    assert exit.shared
    assert "epoch 2/2: loss" in chief.text()
    for trainer in trainers.values():
        trainer.stop()
    exits = [await trainer.exit() for trainer in trainers.values()]
    assert [exit.reason for exit in exits] == ["stopped", "stopped"], exits


async def waiting(tmp_path: Path, folder: str) -> Attended:
    """A sealed trainer whose script waits."""
    (trainer,) = sealed(tmp_path, ("chief",), folder=folder, script="waits.py").values()
    Path(folder, "waits.py").write_text("print('here', flush=True)\nimport time\ntime.sleep(1000)\n")
    await trainer.wait(lambda: "here" in trainer.text())
    return trainer


def family_of(trainer: Attended) -> list[psutil.Process]:
    """The trainer, its relay, and its socket maker, in order of their start."""
    own = trainer.process.pid
    assert own is not None
    assert not psutil.Process(own).children(), "a script that waits for its children waits for its own"
    family = sorted((each for each in psutil.process_iter() if _group(each.pid) == own), key=lambda p: p.pid)
    assert len(family) == 3, family
    return family


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


async def test_a_sealed_trainer_is_killed_with_everything_beside_it(tmp_path: Path, folder: str) -> None:
    trainer = await waiting(tmp_path, folder)
    family = family_of(trainer)
    trainer.stop(2)
    await trainer.exit()
    for each in family:
        await wait_gone(each.pid)


@pytest.mark.parametrize("which", ["relay", "maker of sockets"])
async def test_if_a_part_of_the_seal_is_killed_the_trainer_is_ended_with_a_reason(
    tmp_path: Path, folder: str, which: str
) -> None:
    trainer = await waiting(tmp_path, folder)
    _, relay, maker = family = family_of(trainer)
    (relay if which == "relay" else maker).kill()
    exit = await trainer.exit()
    assert exit.problem is not None and exit.problem.code == "relay-ended", exit
    for each in family:
        await wait_gone(each.pid)


@pytest.mark.complete
async def test_a_trainer_that_others_can_reach_is_ended_with_a_reason_before_it_meets_anyone(
    tmp_path: Path, folder: str
) -> None:
    """Its listener was made outside and passed in as a descriptor, unlike anything in a trainer."""
    with socket.create_server(("0.0.0.0", 0)) as everywhere, socket.socket(socket.AF_UNIX) as handing:
        place = f"0.0.0.0:{everywhere.getsockname()[1]}"
        handing.bind(str(tmp_path / "hand"))
        handing.listen()
        script = Path(folder) / "multi_worker_loop.py"
        taking = (
            "import socket\n"
            "asking = socket.socket(socket.AF_UNIX)\n"
            f"asking.connect({str(tmp_path / 'hand')!r})\n"
            "brought = socket.recv_fds(asking, 1, 1)\n"
        )
        text = script.read_text(encoding="utf-8")
        script.write_text(
            text.replace("import argparse\n", f"import argparse\n{taking}", 1), encoding="utf-8"
        )
        trainers = sealed(tmp_path, ("chief", "worker"), folder=folder, script=script.name)

        def hand_out() -> None:
            for _ in trainers:
                asked, _ = handing.accept()
                with asked:
                    socket.send_fds(asked, [b"."], [everywhere.fileno()])

        await asyncio.to_thread(hand_out)
        exits = await asyncio.gather(*(trainer.exit() for trainer in trainers.values()))
    problems = [
        exit.problem for exit in exits if exit.problem is not None and exit.problem.code == "not-sealed"
    ]
    assert problems, exits
    assert all(place in problem.what for problem in problems)
    assert not any(trainer.of(trainer_messages.Met) for trainer in trainers.values())


async def test_where_namespaces_are_forbidden_the_trainer_is_refused_with_a_reason(
    tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorFlow never listens there: neither on the network nor on the laptop's loopback."""
    free = spawn.command()
    monkeypatch.setattr(spawn, "command", lambda: [sys.executable, "-m", "tests.forbidden", *free])
    (trainer,) = sealed(tmp_path, ("chief",), folder=folder, script="multi_worker_loop.py").values()
    exit = await trainer.exit()
    assert exit.reason == "killed" and exit.problem is not None
    assert exit.problem.code == "not-sealed"
    assert "cannot be sealed on this laptop" in exit.problem.what and "tandem doctor" in exit.problem.fix
    assert not trainer.of(trainer_messages.Connecting)


@pytest.mark.parametrize("downloads", [True, False])
async def test_a_script_downloads_where_it_may_and_reaches_nothing_where_it_may_not(
    tmp_path: Path, folder: str, downloads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Path(folder) / "fetches.py"
    with serving("127.5.5.5") as server:
        # The laptop's own way to the internet: there is none here.
        monkeypatch.setenv("http_proxy", f"http://{server}")
        script.write_text(
            "import os, keras\n"
            "os.mkdir('cache')  # else Keras takes one below /tmp, which is kept\n"
            "try:\n"
            "    path = keras.utils.get_file('data', 'http://far.example/data', cache_dir='cache')\n"
            "    print('came:', open(path).read(23))\n"
            "except Exception as error:\n"
            "    print('stayed away:', error)\n"
        )
        (trainer,) = sealed(
            tmp_path, ("chief",), downloads=downloads, folder=folder, script=script.name
        ).values()
        assert (await trainer.exit()).reason == "finished", trainer.text("stderr")
    assert ("came: http://far.example/data" in trainer.text()) is downloads, trainer.text()
    assert ("stayed away:" in trainer.text()) is not downloads
    said = " ".join(report.words for report in trainer.of(trainer_messages.Said))
    assert ("goes through Tandem's proxy" if downloads else "It has no network") in said
