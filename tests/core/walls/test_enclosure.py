"""Walls around a small process, as root and as an ordinary user."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.vocabulary.access import Grant
from core.vocabulary.trainer_messages import Enclosure
from core.vocabulary.wire import to_json
from core.walls import enclosure, landlock, levels
from tests.core.walls import attacks
from tests.core.walls.laptop import laptop

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(bool(levels.found().gaps), reason="the kernel refuses less"),
]
NOBODY = 65534
USERS = [None, *([NOBODY] if os.geteuid() == 0 else [])]
_WALLED = """
import contextlib, ctypes, encodings.idna, fcntl, mmap, struct
import json, os, signal, socket, subprocess, sys, typing, _posixsubprocess
user = int(sys.argv[1])
from core.vocabulary.trainer_messages import Enclosure
from core.vocabulary.wire import from_json
from core.walls import enclosure
from core.walls.levels import Level
walls = from_json(sys.argv[2], Enclosure)
if user >= 0:
    os.setgroups([]); os.setgid(user); os.setuid(user)
    ctypes.CDLL(None).prctl(4, 1)
if sys.argv[3] != "out":
    enclosure.enclose(walls, level=Level(int(sys.argv[3]), True))
os.chdir(walls.home)
del sys.argv[1:4]
exec(compile(sys.stdin.read(), "attacks", "exec"))
"""


def walled(
    walls: Enclosure,
    code: str,
    *arguments: str,
    user: int | None = None,
    inside: bool = True,
    level: int = 0,
    first: str = "",
) -> str:
    """Returns its output. ``first``: code that runs outside. ``level``: Landlock's; 0: this kernel's."""
    how = str(level or landlock.level()) if inside else "out"
    words = (str(-1 if user is None else user), to_json(walls).decode(), how)
    done = subprocess.run(
        [sys.executable, "-c", first + _WALLED, *words, *arguments],
        input=code,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def walls_at(place: Path, home: str = "/nowhere", user: int | None = None) -> Enclosure:
    found = Enclosure(folders=(str(place / "own"),), home=str(place / "own"), user=home)
    enclosure.prepare(found)
    if user is not None:
        os.chown(place / "own", user, user)
    return found


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can reach, unlike pytest's."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("user", USERS)
def test_inside_walls_every_attack_fails(place: Path, user: int | None) -> None:
    with laptop(place, user=user) as targets:
        walls = walls_at(place, targets["home"], user)
        said = walled(walls, Path(attacks.__file__).read_text(), json.dumps(targets), user=user)
    assert {name: got for name, got in json.loads(said).items() if got != attacks.NONE} == {}


def test_outside_walls_most_attacks_succeed(tmp_path: Path) -> None:
    """The same attacks without walls: only the walls refuse them."""
    with laptop(tmp_path) as targets:
        lost = (
            "remove",
            "move",
            "cut",
            "write",
            "make",
            "send",
            "limit",
            "load",
            "mount",
            "become",
            "ptrace",
        )
        code = Path(attacks.__file__).read_text()
        for word in lost:
            code = code.replace(f'        "{word}', f'        "not tried: {word}')
        code = code.replace("in tries.items():", "in tries.items():\n        if name[:3] == 'not': continue")
        said = walled(walls_at(tmp_path), code, json.dumps(targets), inside=False)
    got = json.loads(said)
    # Access to another's memory depends on the system's own settings.
    assert len([name for name, each in got.items() if each != attacks.NONE]) >= len(got) - 6, got


def test_a_tcp_socket_stays_one() -> None:
    """On kernels with SMC, a socket turned to it escapes Landlock's port rules."""
    code = """
import errno, socket
from core.walls import system_calls
def turn():
    try: socket.socket().setsockopt(socket.IPPROTO_TCP, 31, b"smc")
    except OSError as error: return error.errno
assert turn() != errno.ENOPROTOOPT
system_calls.forbid(network=True)
assert turn() == errno.ENOPROTOOPT
socket.socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_in_a_network_of_its_own_a_script_makes_the_kernel_look_for_no_other_protocol() -> None:
    """The kernel would load the protocol's module, such as SCTP's."""
    code = """
import errno, socket
from core.walls import system_calls
system_calls.forbid(network=False)
def made(kind, protocol):
    try: socket.socket(family, kind, protocol).close()
    except OSError as error: return errno.errorcode[error.errno]
    return "made"
for family in (socket.AF_INET, socket.AF_INET6):
    assert {made(1, 0), made(1, 6), made(2, 0), made(2, 17)} == {"made"}
    others = {made(kind, number) for kind in range(1, 7) for number in (1, 33, 115, 132, 136, 256, 262)}
    assert others == {"EACCES"}, others
    assert made(socket.SOCK_SEQPACKET, 0) == made(socket.SOCK_RAW, 255) == "EACCES"
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_file_elsewhere_is_not_truncated_where_landlock_does_not_see_it(tmp_path: Path) -> None:
    """Its levels before 3 do not know truncate(2)."""
    code = """
import os, sys
from core.walls import system_calls
system_calls.forbid(network=True)
try: os.truncate(sys.argv[1], 0)
except PermissionError: print("refused")
"""
    theirs = tmp_path / "theirs"
    theirs.write_text("whole")
    done = subprocess.run(
        [sys.executable, "-c", code, str(theirs)], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("refused\n", "")
    assert theirs.read_text() == "whole"


def test_everything_that_a_script_needs_works_inside_walls(tmp_path: Path) -> None:
    code = """
import asyncio, multiprocessing, os, shutil, signal, socket, subprocess, sys, tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.shared_memory import SharedMemory
def square(number): return number * number
with multiprocessing.Pool(2) as pool: assert pool.map(square, range(3)) == [0, 1, 4]
with ProcessPoolExecutor(2) as pool: assert list(pool.map(square, range(3))) == [0, 1, 4]
queue = multiprocessing.Queue(); queue.put(1); assert queue.get() == 1
memory = SharedMemory(create=True, size=8); memory.close(); memory.unlink()
async def child():
    process = await asyncio.create_subprocess_exec("true")
    return await process.wait()
assert asyncio.run(child()) == 0
sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
sleeper.terminate(); assert sleeper.wait() == -signal.SIGTERM
assert subprocess.run([sys.executable, "-c", "import json"]).returncode == 0
one, other = socket.socketpair(); one.send(b"x"); assert other.recv(1) == b"x"
open("own", "w").write("x"); os.mkdir("a"); os.rename("own", "a/own"); assert open("a/own").read() == "x"
shutil.copy2("a/own", "copied"); shutil.copytree("a", "b"); assert os.listdir("b") == ["own"]
assert subprocess.run(["true"], start_new_session=True).returncode == 0
assert os.path.expanduser("~/x") == os.path.join(os.environ["HOME"], "x")
print("all")
"""
    walls = walls_at(tmp_path)
    assert walled(walls, code) == "all"


def test_a_file_can_be_made_executable_inside_and_no_mode_elsewhere_changes(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("x")
    theirs.chmod(0o600)
    code = f"""
import os, pathlib, subprocess
os.chmod = _chmod(os.chmod)
script = pathlib.Path("run.sh")
script.write_text("#!/bin/sh\\necho ran")
script.chmod(0o755)
print(subprocess.run(["./run.sh"], capture_output=True, text=True).stdout)
try: os.chmod({str(theirs)!r}, 0o777)
except PermissionError: print("refused")
"""
    early = "from core.trainer.walls import _chmod\n"
    said = walled(walls_at(tmp_path), code, first=early)
    assert said.split() == ["ran", "refused"] and stat.S_IMODE(theirs.stat().st_mode) == 0o600


def test_a_link_in_place_of_a_readable_path_opens_nothing(tmp_path: Path) -> None:
    """An earlier trainer of the run may have left it."""
    secret, link = tmp_path / "secret", tmp_path / "own/link"
    secret.mkdir()
    walls = walls_at(tmp_path)
    link.symlink_to(secret)
    code = f"""
try: print(os.listdir({str(secret)!r}))
except PermissionError: print("nothing")
"""
    assert walled(replace(walls, reads=(str(secret),)), code) == "[]"
    assert walled(replace(walls, reads=(str(link),)), code) == "nothing"


def test_opened_paths_are_found_below_home_and_writable_only_where_allowed(
    tmp_path: Path,
) -> None:
    """A link put on its way since then opens nothing."""
    user = tmp_path.resolve() / "user"
    for name in ("Pictures", "out", "moved/in", "secret/in"):
        (user / name).mkdir(parents=True)
        (user / name / "a").write_text(name)
    opened = tuple(
        Grant(asked=f"~/{name}", path=str(user / name), write=name == "out")
        for name in ("Pictures", "out", "moved/in")
    )
    walls = replace(walls_at(tmp_path, str(user)), opened=opened)
    enclosure.prepare(walls)
    (user / "moved").rename(user / "was")
    (user / "moved").symlink_to(user / "secret")
    code = """
import os
print(open(os.path.join(walls.home, "Pictures/a")).read())
open(os.path.join(walls.home, "out/b"), "w").write("written")
for act in (
    lambda: open(os.path.join(walls.home, "Pictures/b"), "w"),
    lambda: os.unlink(walls.user + "/Pictures/a"),
    lambda: open(walls.user + "/secret/in/a"),
    lambda: open(walls.user + "/moved/in/a"),
    lambda: os.listdir(walls.user),
):
    try: print("got", act())
    except OSError: print("nothing")
"""
    assert walled(walls, code).split() == ["Pictures", *["nothing"] * 5]
    assert (user / "out/b").read_text() == "written"


def test_a_link_below_home_is_made_nowhere_else(tmp_path: Path) -> None:
    user = tmp_path.resolve() / "user"
    (user / "a").mkdir(parents=True)
    opened = tuple(Grant(asked=f"~/{name}", path=str(user / name)) for name in ("a", "a/b", "a/c/d"))
    enclosure.prepare(replace(walls_at(tmp_path, str(user)), opened=opened))
    assert list((user / "a").iterdir()) == []
