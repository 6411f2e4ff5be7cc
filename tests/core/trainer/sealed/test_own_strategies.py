"""Scripts that need TensorFlow's own runtime, in real sealed trainers on one machine."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.supervisor import spawn
from core.vocabulary import trainer_messages
from core.vocabulary.trainer_messages import Seal
from tests.core.trainer.attended import Attended, free_ports, keys_for
from tests.core.trainer.sealed.test_proxy import serving

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
_COMMAND = spawn.command
EXAMPLES = Path(__file__).parents[4] / "resources/examples/strategies"


def sealed(
    tmp_path: Path,
    roles: tuple[str, ...],
    *,
    downloads: bool = False,
    apart: Sequence[str] = (),
    **train: Any,
) -> dict[str, Attended]:
    """A trainer for each of ``roles``, in rank order. ``apart``: tasks that are started as on a system where
    namespaces are allowed, though the others are not."""
    places = [f"127.0.0.1:{port}" for port in free_ports(len(roles))]
    inside = [f"127.77.0.{rank + 1}:{port.partition(':')[2]}" for rank, port in enumerate(places)]
    spec: dict[str, list[str]] = {}
    for role, place in zip(roles, inside, strict=True):
        spec.setdefault(role, []).append(place)
    # Before the others' threads start theirs.
    children = {name: free() for name in apart}
    found = {}
    for rank, (role, keys) in enumerate(zip(roles, keys_for(len(roles)), strict=True)):
        task = {"type": role, "index": spec[role].index(inside[rank])}
        name = f"{role}:{task['index']}"
        found[name] = Attended(
            tmp_path / f"{role}-{rank}.log",
            child=children.get(name),
            task=name,
            strategy="own",
            tf_config=json.dumps({"cluster": spec, "task": task}),
            rank=rank,
            shares=(1,) * len(roles),
            seal=Seal(keys=keys, outside=tuple(places), inside=tuple(inside), downloads=downloads),
            **train,
        )
    return found


def free() -> spawn.Child:
    """A sealed trainer, whatever ``spawn.command`` is for the others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spawn, "command", _COMMAND)
        return spawn.spawn(sealed=True)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(shutil.copytree(EXAMPLES, tmp_path / "project"))


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
    """The trainer, its relay, and who makes sockets, in the order in which they began."""
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
    assert not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in family)


@pytest.mark.parametrize("which", ["relay", "maker of sockets"])
async def test_where_a_part_of_the_seal_is_killed_the_trainer_is_ended_by_name(
    tmp_path: Path, folder: str, which: str
) -> None:
    trainer = await waiting(tmp_path, folder)
    _, relay, maker = family = family_of(trainer)
    (relay if which == "relay" else maker).kill()
    exit = await trainer.exit()
    assert exit.problem is not None and exit.problem.code == "relay-ended", exit
    assert not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in family)


async def test_a_trainer_that_others_can_reach_is_ended_by_name_before_anybody_is_met(
    tmp_path: Path, folder: str
) -> None:
    """Its listener was made outside, and came in by a descriptor, as nothing in a trainer does."""
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


@pytest.mark.parametrize("downloads", [True, False])
async def test_a_script_downloads_where_it_may_and_reaches_nothing_where_it_may_not(
    tmp_path: Path, folder: str, downloads: bool
) -> None:
    script = Path(folder) / "fetches.py"
    with serving("127.5.5.5") as server:
        script.write_text(
            "import keras\n"
            "try:\n"
            f"    path = keras.utils.get_file('data', 'http://{server}/data', cache_dir={str(tmp_path)!r})\n"
            "    print('came:', open(path).read(16))\n"
            "except Exception as error:\n"
            "    print('stayed away:', error)\n"
        )
        (trainer,) = sealed(
            tmp_path, ("chief",), downloads=downloads, folder=folder, script=script.name
        ).values()
        assert (await trainer.exit()).reason == "finished", trainer.text("stderr")
    assert ("came: /data for nobody" in trainer.text()) is downloads, trainer.text()
    assert ("stayed away:" in trainer.text()) is not downloads
    said = " ".join(report.words for report in trainer.of(trainer_messages.Said))
    assert ("goes through Tandem's proxy" if downloads else "It has no network") in said
