"""What older kernels refuse, and that the question states the gaps. Landlock is limited to their level."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.vocabulary.permission import Gap
from core.walls import landlock
from core.walls.levels import Level
from tests.core.walls import attacks
from tests.core.walls.laptop import laptop
from tests.core.walls.test_enclosure import walled, walls_at

pytestmark = pytest.mark.real
BY_GAP: dict[Gap, set[str]] = {
    "network": {"a loopback service", "a service in the network", "listen"},
    "processes": {"send SIGTERM", "send SIGTERM by a descriptor"},
}
"""The attacks that a gap allows."""
REFUSED: dict[int, tuple[Gap, ...]] = {
    **dict.fromkeys((2, 3), ("network", "processes")),
    **dict.fromkeys((4, 5), ("processes",)),
    **dict.fromkeys((6, 7), ()),
}
HERE = range(2, landlock.level() + 1)


@pytest.mark.parametrize("level", HERE)
def test_exactly_the_gaps_stated_in_the_question_let_attacks_through(tmp_path: Path, level: int) -> None:
    assert Level(level, True).walls == "default"
    code = Path(attacks.__file__).read_text().replace("signal.SIGTERM", "signal.SIGWINCH")
    with laptop(tmp_path) as targets:
        shared = replace(walls_at(tmp_path, targets["home"]), port=25_998, calls=())
        got = json.loads(walled(shared, code, json.dumps(targets), level=level))
    through = {name for name, each in got.items() if each != attacks.NONE}
    assert Level(level, True).gaps == REFUSED.get(level, ())
    assert through == set[str]().union(*(BY_GAP[gap] for gap in Level(level, True).gaps))


def test_a_kernel_that_can_refuse_too_little_has_no_walls(tmp_path: Path) -> None:
    """The question then says that a script reads what its user can."""
    assert Level(1, True).walls == Level(7, False).walls == Level(0, True).walls == "none"
    (tmp_path / "theirs").write_text("read")
    code = f"print(open({str(tmp_path / 'theirs')!r}).read())"
    assert walled(walls_at(tmp_path), code, level=1) == "read"


@pytest.mark.parametrize("level", HERE)
def test_readable_files_cannot_be_truncated_on_any_level(tmp_path: Path, level: int) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("whole")
    code = f"""
import ctypes
path, libc = {str(theirs)!r}, ctypes.CDLL(None)
assert open(path).read() == "whole"
how = struct.pack("QQQ", os.O_RDONLY | os.O_TRUNC, 0, 0)
for cut in (
    lambda: os.open(path, os.O_RDONLY | os.O_TRUNC),
    lambda: os.open(path, 3 | os.O_TRUNC),
    lambda: os.truncate(path, 0),
):
    try: print("cut by", cut())
    except OSError: print("refused")
print(libc.syscall(437, -100, path.encode(), how, 24))
"""
    said = walled(replace(walls_at(tmp_path), reads=(str(theirs),)), code, level=level)
    assert said.split() == ["refused"] * 3 + ["-1"]
    assert theirs.read_text() == "whole"
