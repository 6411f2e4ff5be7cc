"""Laptops on one machine: a network namespace each, joined by a switch, as fast as a cable of that rate.

As root directly; for an ordinary user inside a user namespace. Nothing outlives this process: each namespace
is held by a ``cat`` whose input ends with us.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Self

RATE = "936mbit"
"""TCP's share of a gigabit cable."""
WIFI = "240mbit"
"""Of good Wi-Fi."""
BUFFER_S = 0.05
"""Maximum age of queued data; more is dropped. Many a home router queues seconds of it."""

NETWORK = "10.77.0"
ENTER_S = 60.0
_TOOLS = ("unshare", "nsenter", "ip", "tc", "cat")
_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))


class NoLab(Exception):
    """This system does not allow building one; the message says why."""


class Network:
    """``hosts`` namespaces with the addresses ``NETWORK.1``, ``.2``, …; ``close`` removes them."""

    def __init__(self, hosts: int, rate: str, buffer_s: float = BUFFER_S) -> None:
        self._holders: list[subprocess.Popen[bytes]] = []
        self._user = False
        try:
            self._switch = self._hold_first()
            self._in(self._switch, "ip", "link", "set", "lo", "up")
            self._in(self._switch, "ip", "link", "add", "switch", "type", "bridge", "forward_delay", "0")
            self._in(self._switch, "ip", "link", "set", "switch", "up")
            self._hosts = [self._add(number, rate, buffer_s) for number in range(hosts)]
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        for holder in reversed(self._holders):
            holder.kill()
            holder.communicate()
        self._holders.clear()

    # --- using it ------------------------------------------------------------------------------------------

    def enter(self, host: int) -> tuple[str, ...]:
        """A command line prefix that runs the command on that host, in the present folder."""
        return (*self._entry(self._hosts[host]), f"--wd={Path.cwd()}")

    def do(self, host: int, *command: str) -> str:
        """Runs a command on a host as its administrator; returns its output. Raises ``NoLab`` if it fails."""
        return self._in(self._hosts[host], *command)

    def address(self, host: int) -> str:
        return f"{NETWORK}.{host + 1}"

    def cable(self, host: int, *, plugged: bool) -> None:
        """Pulls a host's cable at the switch, or plugs it in again."""
        self._in(self._switch, "ip", "link", "set", f"port{host}", "up" if plugged else "down")

    def close_trainers_ports(self, host: int, *, node_port: int) -> None:
        """A firewall on that host from now on: calls to trainers' ports are dropped, and everything else
        passes.

        Routing rules can do that on machines without nftables' program, such as those that test this.
        """
        self.do(host, "ip", "rule", "add", "pref", "1", "lookup", "local")
        self.do(host, "ip", "rule", "del", "pref", "0")
        for ports in (f"20000-{node_port - 1}", f"{node_port + 1}-32000"):
            calls = ("iif", "eth0", "ipproto", "tcp", "dport", ports)
            self.do(host, "ip", "rule", "add", "pref", "0", *calls, "blackhole")

    def carry_multicast(self, carried: bool) -> None:
        """Whether the switch forwards multicast: many a hotel's or school's Wi-Fi does not."""
        for host in range(len(self._hosts)):
            flood = "on" if carried else "off"
            self._in(
                self._switch, "ip", "link", "set", f"port{host}", "type", "bridge_slave", "mcast_flood", flood
            )

    # --- building it ---------------------------------------------------------------------------------------

    def _hold_first(self) -> int:
        missing = [tool for tool in _TOOLS if shutil.which(tool, path=_PATH) is None]
        if missing:
            raise NoLab(f"no network namespaces here: {', '.join(missing)} missing")
        refusals = []
        ways = ((), ("--user", "--map-root-user")) if os.geteuid() == 0 else (("--user", "--map-root-user"),)
        for way in ways:
            self._user = bool(way)
            try:
                return self._hold("unshare", *way, "--net", "--mount", "cat")
            except NoLab as refusal:
                refusals.append(str(refusal))
        raise NoLab(f"no network namespaces here: {'; '.join(refusals)}")

    def _add(self, number: int, rate: str, buffer_s: float) -> int:
        entry = self._entry(self._switch)
        host, port = self._hold(*entry, "unshare", "--net", "--mount", "cat"), f"port{number}"
        end = ("type", "veth", "peer", "name", "eth0", "netns", str(host))
        self._in(self._switch, "ip", "link", "add", port, *end)
        self._in(self._switch, "ip", "link", "set", port, "master", "switch", "up")
        self._in(host, "ip", "address", "add", f"{self.address(number)}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            self._in(host, "ip", "link", "set", link, "up")
        shape = ("tbf", "rate", rate, "burst", "256kb", "latency", f"{1000 * buffer_s:g}ms")
        self._in(host, "tc", "qdisc", "add", "dev", "eth0", "root", *shape)
        return host

    def _hold(self, *command: str) -> int:
        """Starts a holder of namespaces; returns its process id, once they exist."""
        holder = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PATH": _PATH},
            start_new_session=True,
        )
        assert holder.stdin is not None and holder.stdout is not None
        try:
            holder.stdin.write(b"here\n")
            holder.stdin.flush()
            answer = holder.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if answer != b"here\n":
            holder.kill()
            _, errors = holder.communicate()
            raise NoLab(errors.decode(errors="replace").strip() or f"{command[0]} ended at once")
        self._holders.append(holder)
        return holder.pid

    def _entry(self, holder: int) -> tuple[str, ...]:
        user = ("--user", "--preserve-credentials") if self._user else ()
        return (
            shutil.which("nsenter", path=_PATH) or "nsenter",
            f"--target={holder}",
            *user,
            "--net",
            "--mount",
        )

    def _in(self, holder: int, *command: str) -> str:
        done = subprocess.run(
            (*self._entry(holder), *command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ENTER_S,
            env={**os.environ, "PATH": _PATH},
        )
        if done.returncode != 0:
            raise NoLab(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
        return done.stdout


def why_none() -> str:
    """Why no lab can be built here; ``""`` if it can."""
    try:
        with Network(1, RATE):
            return ""
    except NoLab as refusal:
        return str(refusal)
