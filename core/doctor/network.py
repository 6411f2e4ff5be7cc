"""Whether others can find and reach this laptop. Gives hints about what a program cannot check."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from core.doctor.view import Examined, error, note, ok, warning
from core.net import address
from core.vocabulary.answers import Finding
from core.vocabulary.errors import TandemError

TOPIC = "network"
ROUND_S = 6.0
"""Time limit of the mDNS round trip: registering takes 1.7 s, discovery 1.2 s."""
CONNECT_S = 3.0
EPHEMERAL = range(32768, 61000)
LOOPBACK = "127.0.0.1"


def check_interfaces(view: Examined) -> Finding:
    if not view.running:
        return note("interfaces", TOPIC, "Tandem does not run here, so its networks are not known.")
    addresses = view.state.me.addresses if view.state.me else ()
    outside = [text for text in addresses if not _host(text).startswith(("127.", "::1"))]
    if outside:
        return ok("interfaces", TOPIC, f"Others reach this laptop at {', '.join(outside)}.")
    return error(
        "no-network",
        TOPIC,
        "This laptop is not on a network that Tandem uses.",
        "Join the other laptop's Wi-Fi or a hotspot of one of the two; see the interfaces in the settings.",
    )


async def check_mdns(view: Examined, *, limit_s: float = ROUND_S) -> Finding:
    """Whether this laptop finds a service that it announces itself."""
    hosts = [_host(text) for text in view.state.me.addresses] if view.state.me else []
    hosts = [host for host in hosts if ":" not in host] or [LOOPBACK]
    fix = "Allow UDP port 5353 in the firewall. Without it, pair by the address that Tandem shows."
    try:
        found = await _announce_and_look(hosts, limit_s)
    except OSError as failure:
        what = f"mDNS can't be used here ({failure.strerror or failure})."
        return error("mdns", TOPIC, what, fix)
    if not found:
        what = (
            f"This laptop does not hear its own mDNS announcement on {', '.join(hosts)} within {limit_s:g} s."
        )
        return error("mdns", TOPIC, what, fix)
    return ok("mdns", TOPIC, f"mDNS announcements go out and are heard on {', '.join(hosts)}.")


async def _announce_and_look(hosts: Sequence[str], limit_s: float) -> bool:
    from zeroconf import IPVersion, ServiceListener, Zeroconf
    from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

    for host in hosts:
        # An address that is gone makes zeroconf raise and leave its socket open.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as trial:
            trial.bind((host, 0))
    kind = "_tandem-check._tcp.local."
    name = f"{secrets.token_hex(6)}.{kind}"
    seen = asyncio.Event()

    class Look(ServiceListener):
        def add_service(self, zc: Zeroconf, type_: str, name_: str) -> None:
            if name_ == name:
                seen.set()

        def update_service(self, zc: Zeroconf, type_: str, name_: str) -> None: ...

        def remove_service(self, zc: Zeroconf, type_: str, name_: str) -> None: ...

    async with contextlib.AsyncExitStack() as stack:
        ends = []
        for _ in range(2):
            end = AsyncZeroconf(interfaces=list(hosts), ip_version=IPVersion.V4Only)
            stack.push_async_callback(end.async_close)
            ends.append(end)
        announcing, looking = ends
        browser = AsyncServiceBrowser(looking.zeroconf, kind, listener=Look())
        stack.push_async_callback(browser.async_cancel)
        info = AsyncServiceInfo(kind, name, port=9, addresses=[socket.inet_aton(hosts[0])], server=name)
        try:
            async with asyncio.timeout(limit_s):
                await announcing.async_register_service(info)
                await seen.wait()
        except TimeoutError:
            return False
    return True


async def check_port(view: Examined, ephemeral: range = EPHEMERAL) -> Finding:
    """Whether the node's port answers here, or is free for it."""
    port = view.wanted_port
    if port == 0:
        return note("port", TOPIC, "Tandem uses any free port; others find it by mDNS.")
    if not view.running:
        return await asyncio.to_thread(_free, port)
    try:
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    except (OSError, TimeoutError) as failure:
        return error(
            "port-silent",
            TOPIC,
            f"Tandem's own port {port} does not answer on this laptop ({failure or 'no answer in time'}).",
            "Restart Tandem; if that does not help, a firewall on this laptop blocks even local connections.",
        )
    if port in ephemeral:
        return warning(
            "port-ephemeral",
            TOPIC,
            f"Port {port} is in the range that the system hands out; it may be taken at the next start.",
            "Choose one from 1024 to 32767 in the settings.",
        )
    return ok("port", TOPIC, f"Tandem answers on port {port}.")


def check_firewall(view: Examined, etc: Path = Path("/etc"), run: Path = Path("/run")) -> Finding:
    """The active firewall, as far as an ordinary user can see, and what to allow in it."""
    port = view.wanted_port or "any"
    which = _desktop_firewall(etc, run)
    if which == "ufw":
        allow = (f"{port}/tcp", "5353/udp", "20000:32000/tcp")
        command = " && ".join(f"sudo ufw allow {each}" for each in allow)
        return note(
            "firewall",
            TOPIC,
            "The firewall ufw is switched on.",
            f"If the others can't reach this laptop: {command} (the last is for trainers, during runs).",
            command=command,
        )
    if which == "firewalld":
        command = f"sudo firewall-cmd --add-port={port}/tcp --add-port=5353/udp --add-port=20000-32000/tcp"
        return note(
            "firewall",
            TOPIC,
            "The firewall firewalld is switched on.",
            f"If the others can't reach this laptop: put its network into the zone home, or {command}",
            command=command,
        )
    if shutil.which("nft") or shutil.which("iptables"):
        return note(
            "firewall", TOPIC, "No desktop firewall is switched on; rules made by hand can't be seen."
        )
    return ok("firewall", TOPIC, "No firewall was found on this laptop.")


def let_trainers_in(host: str, etc: Path = Path("/etc"), run: Path = Path("/run")) -> str:
    """How to let the laptop at ``host`` reach trainers on this one: a command, or a description."""
    host = host.partition("%")[0]
    words = f"let TCP ports 20000–32000 in from {host} in its firewall"
    return command_to_let_in(host, etc, run) or words


def command_to_let_in(host: str, etc: Path = Path("/etc"), run: Path = Path("/run")) -> str:
    """The command for that; ``""`` where no firewall is known. ``host`` without a zone."""
    match _desktop_firewall(etc, run):
        case "ufw":
            return f"sudo ufw allow from {host} to any port 20000:32000 proto tcp"
        case "firewalld":
            return "sudo firewall-cmd --add-port=20000-32000/tcp"
    return ""


def check_isolation(view: Examined, net: Path = Path("/sys/class/net")) -> Finding | None:
    """Whether a paired device is seen by mDNS but can't be reached, as if the network kept the two apart."""
    for device in view.state.devices.values():
        if device.seen and device.paired and not device.linked:
            return warning(
                "seen-not-reached",
                TOPIC,
                f"{device.shown_name} is seen on the network, but can't be reached.",
                "Check for a firewall, or for an access point that keeps its guests apart (client "
                "isolation, guest network). Try a hotspot of one of the laptops, or a cable.",
            )
    wireless = [card.parent.name for card in net.glob("*/wireless")]
    if view.running and wireless and not view.state.devices:
        return note(
            "nobody-found",
            TOPIC,
            f"No other laptop was found over {', '.join(sorted(wireless))}.",
            "If Tandem is open there on the same Wi-Fi, the access point may keep its guests apart "
            "(client isolation, guest network): use a hotspot of one of the laptops, or pair by address.",
        )
    return None


def _free(port: int) -> Finding:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("", port))
        except OSError as failure:
            return warning(
                "port-taken",
                TOPIC,
                f"Tandem can't use port {port} on this laptop ({failure.strerror}).",
                "End the program that uses it, or choose another port in the settings.",
            )
    return ok("port", TOPIC, f"Port {port} is free for Tandem.")


def _desktop_firewall(etc: Path, run: Path) -> Literal["ufw", "firewalld"] | None:
    """The active firewall, as far as an ordinary user can see."""
    with contextlib.suppress(OSError):
        lines = (etc / "ufw/ufw.conf").read_text().splitlines()
        if any(line.strip().lower() == "enabled=yes" for line in lines):
            return "ufw"
    there = (run / "firewalld").exists() or (run / "firewalld.pid").exists()
    return "firewalld" if there else None


def _host(text: str) -> str:
    try:
        return address.parse(text).host
    except TandemError:
        return text
