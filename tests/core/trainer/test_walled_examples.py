"""Every shipped example trains within walls, on all members, of which one was kept ready; one start each."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from core.supervisor import spawn
from core.vocabulary.trainer_messages import Enclosure, Seal
from core.walls import enclosure, levels
from tests.core.trainer.attended import Attended, free_ports, keys_for

EXAMPLES = Path(__file__).parents[3] / "resources/examples"
NAMES = sorted(str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.py"))
OWN = ("strategies/multi_worker_loop.py", "strategies/parameter_server.py")
SEALED = ("strategies/parameter_server.py",)
ALWAYS = "digits/digits.py"

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(900),
    pytest.mark.skipif(levels.found().walls == "none", reason="this system has no walls"),
]


def walls_of(place: Path, port: int, ports: list[int], *, sealed: bool) -> Enclosure:
    own = tuple(str(place / part) for part in ("work", "home"))
    calls = None if sealed else tuple(ports)
    found = Enclosure(folders=own, home=own[1], user=str(Path.home()), port=port, calls=calls)
    enclosure.prepare(found)
    return found


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == ALWAYS else [pytest.mark.complete(name)]) for name in NAMES],
)
async def test_an_example_trains_within_walls(tmp_path: Path, name: str) -> None:
    sealed = name in SEALED
    roles = ("chief", "worker", "ps") if sealed else ("chief", "worker")
    ports, keys = free_ports(len(roles)), keys_for(len(roles))
    outside = tuple(f"127.0.0.1:{port}" for port in ports)
    inside = tuple(f"127.77.0.{rank + 1}:{port}" for rank, port in enumerate(ports))
    spec = {role: [place] for role, place in zip(roles, inside if sealed else outside, strict=True)}
    members: list[Attended] = []
    for rank, role in enumerate(roles):
        walls = walls_of(tmp_path / role, ports[rank], ports, sealed=sealed)
        shutil.copytree((EXAMPLES / name).parent, walls.folders[0], dirs_exist_ok=True)
        members.append(
            Attended(
                tmp_path / f"{role}.log",
                task=f"{role}:0",
                folder=walls.folders[0],
                script=Path(name).name,
                arguments=("--epochs", "1"),
                strategy="own" if name in OWN else "managed",
                tf_config=json.dumps({"cluster": spec, "task": {"type": role, "index": 0}}),
                rank=rank,
                shares=(1,) * len(roles),
                exchange=None if sealed else keys[rank],
                seal=Seal(keys=keys[rank], outside=outside, inside=inside) if sealed else None,
                temporary=walls.home,
                walls=walls,
                child=spawn.spawn_warm() if role == "worker" else None,
            )
        )
    script = members[: 1 if sealed else 2]
    exits = await asyncio.gather(*(member.exit(600.0) for member in script))
    for member in members[len(script) :]:
        member.stop(2)
        await member.exit()
    assert [each.reason for each in exits] == ["finished"] * len(script), (exits, members[0].text("stderr"))
    assert not any("may not" in member.text() for member in members)
