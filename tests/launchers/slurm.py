"""Real Slurm on this machine: a controller and two nodes, each in its own network namespace.

No systemd and no cgroups: ``proctrack/linuxproc``, ``task/none``. Everything ends with ``with``.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

from tests.lab.network import Network
from tests.launchers.needs import PATH

START_S = 60.0
COMMAND_S = 60.0
NODES = ("n0", "n1")
CONFIGURATION = """\
ClusterName=tandem
SlurmctldHost={name}({addresses[0]})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge/socket
CredType=cred/munge
StateSaveLocation={place}/controller
SlurmdSpoolDir={place}/spool-%n
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd-%n.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
KillWait=120
NodeName=n0 NodeAddr={addresses[0]} CPUs=2
NodeName=n1 NodeAddr={addresses[1]} CPUs=2
PartitionName=all Nodes=n0,n1 Default=YES State=UP
"""


class Slurm:
    """``place`` contains all of its files; ``network`` has a host for each of ``NODES``."""

    def __init__(self, place: Path, network: Network) -> None:
        self.place, self.network = place, network
        self._environ = {**os.environ, "PATH": PATH, "SLURM_CONF": str(place / "slurm.conf")}
        self._ends = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            undo.push(self._ends)
            self._write()
            self._start(0, "munged", "--foreground", "--force", *self._munge())
            self.until(lambda: (self.place / "munge" / "socket").exists(), "munged", START_S)
            self._start(0, "slurmctld", "-D")
            for host, node in enumerate(NODES):
                self._start(host, "slurmd", "-D", "-N", node)
            self.until(lambda: self._are_idle(), "both nodes are idle", START_S)
            undo.pop_all()
        return self

    def __exit__(self, *failure: object) -> None:
        with suppress(subprocess.SubprocessError):
            # Processes started by daemons outlive them.
            self.do("scancel", "--signal=KILL", "--full", "--user=root")
        self._ends.close()

    def submit(self, file: Path, **environ: str) -> Job:
        """Submits it like a user, with ``environ`` added to the environment."""
        command = [*self.network.enter(0), "sbatch", "--wait", "--parsable", str(file)]
        process = subprocess.Popen(
            command,
            env={**self._environ, **environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ends.enter_context(process)
        self._ends.callback(process.kill)
        assert process.stdout is not None
        return Job(self, process, process.stdout.readline().strip(), file.parent)

    def do(self, *command: str) -> str:
        """Returns its output."""
        return subprocess.run(
            [*self.network.enter(0), *command],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=True,
        ).stdout

    def until(self, condition: Callable[[], bool], what: str, limit_s: float) -> None:
        """Slurm reports no changes: poll."""
        by_s = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < by_s, f"{what}: not within {limit_s:.0f} s\n{self.logs()}"
            time.sleep(0.1)

    def logs(self) -> str:
        return "\n".join(f"{path.name}:\n{path.read_text()[-3000:]}" for path in self.place.glob("*.log"))

    def _are_idle(self) -> bool:
        try:
            return self.do("sinfo", "--noheader", "--format=%T %D").split() == ["idle", str(len(NODES))]
        except subprocess.CalledProcessError:
            return False

    def _write(self) -> None:
        for name in ("munge", "controller", *(f"spool-{node}" for node in NODES)):
            (self.place / name).mkdir(mode=0o711)
        addresses = [self.network.address(host) for host in range(len(NODES))]
        name = socket.gethostname()
        key = self.place / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        (self.place / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (self.place / "slurm.conf").write_text(
            CONFIGURATION.format(name=name, addresses=addresses, place=self.place)
        )
        lines = [
            "127.0.0.1 localhost",
            f"{addresses[0]} {name}",
            *map(" ".join, zip(addresses, NODES, strict=True)),
        ]
        (self.place / "hosts").write_text("\n".join(lines) + "\n")
        for host in range(len(NODES)):
            self.network.do(host, "mount", "--bind", str(self.place / "hosts"), "/etc/hosts")

    def _munge(self) -> list[str]:
        files = {
            "socket": "socket",
            "key-file": "key",
            "pid-file": "pid",
            "log-file": "log",
            "seed-file": "seed",
        }
        return [f"--{option}={self.place}/munge/{name}" for option, name in files.items()]

    def _start(self, host: int, *command: str) -> None:
        with (self.place / f"{command[0]}-{host}.out").open("wb") as file:
            daemon = subprocess.Popen(
                [*self.network.enter(host), *command],
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        self._ends.callback(self._end, daemon)

    def _end(self, daemon: subprocess.Popen[bytes]) -> None:
        daemon.send_signal(signal.SIGTERM)
        try:
            daemon.wait(COMMAND_S)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


class Job:
    """A job submitted from ``folder``. ``number``: Slurm's."""

    def __init__(self, slurm: Slurm, process: subprocess.Popen[str], number: str, folder: Path) -> None:
        self._slurm, self._process, self.number, self._folder = slurm, process, number, folder
        assert number.isdigit(), number

    @property
    def said(self) -> str:
        """All members' output, each line prefixed by the rank."""
        file = self._folder / f"{self.number}.txt"
        return file.read_text(errors="replace") if file.exists() else ""

    def until_said(self, words: str, limit_s: float) -> None:
        def is_said() -> bool:
            assert self._process.poll() is None, f"the job ended before {words!r}:\n{self.said}"
            return words in self.said

        self._slurm.until(is_said, words, limit_s)

    def ends(self, limit_s: float) -> int:
        """Waits for the exit code of its script."""
        try:
            return self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the job did not end:\n{self.said}\n{self._slurm.logs()}") from None
