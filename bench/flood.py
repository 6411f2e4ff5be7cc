"""A malicious paired device floods an agent, alone and as the starter of a run that was allowed."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import IO

import msgspec
import psutil

from bench import processes
from bench.flooder import LIMIT_S, Link
from bench.result import Row, median, ratios, spread
from core.cluster.make_plan import make_plan, new_run_id
from core.home import settings_file, trust, trust_file
from core.home.home import Home, prepare
from core.home.identity import Identity, load_or_create
from core.supervisor.spawn import program
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary.manifest import ProjectFile, manifest_of
from core.vocabulary.phases import Preparing
from core.vocabulary.plan import Plan, Role, RunSpec
from core.vocabulary.progress import LogLines
from core.vocabulary.readings import Reading
from core.vocabulary.settings import Settings

FLOOD_S = 20.0
"""Longest time of each flood."""
MEMORY_LIMIT_MB, DISK_LIMIT_MB, FILES_LIMIT, CPU_LIMIT_PCT = 120.0, 50.0, 200, 20.0
"""Limits for the agent. A fifth of a core is a tenth of a two-core laptop: what a run beside it may lose."""
SCRIPT = b""
"""Nothing of it has to be transferred."""
READING = Reading(
    at_s=1.0,
    cpu_pct=1.0,
    memory_used_bytes=1,
    memory_total_bytes=2,
    sent_bytes_s=0.0,
    received_bytes_s=0.0,
)


ROUNDS, ROUND_S = 10, 8.0
"""Pairs of rounds, with a flood and without; each round lasts `ROUND_S`."""
SPEED_LEAST = 0.9
CORES = 2
TRAINS = b"""import keras, numpy as np
x = np.random.default_rng(0).normal(size=(6400, 256)).astype("float32")
model = keras.Sequential([keras.Input((256,)), keras.layers.Dense(512, "relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, x[:, :1], batch_size=64, epochs=1_000_000, verbose=0)
"""


def measure() -> list[Row]:
    """Runs the whole agent on one core, and the flooder on the others."""
    cores = os.sched_getaffinity(0)
    try:
        return _measured(cores)
    finally:
        os.sched_setaffinity(0, cores)


def _measured(cores: set[int]) -> list[Row]:
    os.sched_setaffinity(0, {max(cores)})
    with flooded(program()) as (flood, agent, heard):
        os.sched_setaffinity(0, cores - {max(cores)} or cores)
        rows = asyncio.run(flood.measure())
        assert agent.stdin is not None
        with tempfile.TemporaryDirectory(prefix="tandem-bench-") as folder:
            script = Path(folder, "train.py")
            script.write_bytes(TRAINS)
            start = {"type": "start_run", "spec": {"script": str(script), "solo": True}}
            agent.stdin.write(msgspec.json.encode(start) + b"\n")
            agent.stdin.flush()
            return [*rows, *asyncio.run(flood.beside(heard))]


@contextlib.contextmanager
def flooded(command: list[str]) -> Iterator[tuple[Flood, subprocess.Popen[bytes], Steps]]:
    """An agent, started by ``command``, and a paired device whose code may run there."""
    with tempfile.TemporaryDirectory(prefix="tandem-bench-") as base:
        home, bad = Home(Path(base, "home")), load_or_create(Path(base, "bad"))
        prepare(home)
        settings_file.write(home.settings, Settings(name="bench", port=0, interfaces=("lo",)))
        victim = load_or_create(home.folder / "identity")
        peer = trust.TrustedPeer(cert_der=bad.cert_der, name_at_pairing="mallory", paired_at=1.0)
        known = trust.add(trust.TrustStore(victim.device_id), peer)
        trust_file.save(home.folder, trust.set_policy(known, peer.device, "always"))
        with subprocess.Popen(
            [*command, "agent", "--jsonl", "--home", str(home.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as agent:
            assert agent.stdout is not None and agent.stdin is not None
            greeting = msgspec.json.decode(agent.stdout.readline())
            port = int(greeting["state"]["me"]["addresses"][0].rpartition(":")[2])
            heard = Steps(agent.pid, agent.stdout)
            listening = threading.Thread(target=heard.listen, daemon=True)
            listening.start()
            try:
                yield Flood(agent.pid, home, victim, bad, port), agent, heard
            finally:
                agent.stdin.close()
                listening.join()


class Steps:
    """Steps of the agent's own training, from its reports. On its own thread.

    Measured in processor time: the training's steps for each second of its own, and what the agent leaves it
    of two cores. So other load on this machine does not matter.
    """

    def __init__(self, pid: int, said: IO[bytes]) -> None:
        self._pid = pid
        self._said = said
        self._news = threading.Condition()
        self._done = 0
        self._at_s = 0.0
        """Time of the newest report, by the trainer's clock."""

    def listen(self) -> None:
        for line in self._said:
            if b'"member_progressed"' in line:
                told = msgspec.json.decode(line)["progress"]
                with self._news:
                    self._done, self._at_s = told["step"], told["at_s"]
                    self._news.notify_all()

    async def speed(self, during_s: float) -> tuple[float, float]:
        """Speed between two trainer reports, `during_s` apart: by processor time, and by the clock."""
        before, at_s, agent_s, all_s = await asyncio.to_thread(self._after, self._at_s)
        done, then_s, now_s, then_all_s = await asyncio.to_thread(self._after, at_s + during_s)
        taken_s = now_s - agent_s
        left = CORES - taken_s / (then_s - at_s)
        by_time_of_processors = left * (done - before) / (then_all_s - all_s - taken_s)
        return by_time_of_processors, (done - before) / (then_s - at_s)

    def _after(self, at_s: float) -> tuple[int, float, float, float]:
        """Steps, when, and the processor time until then: the agent's, and that including the training's."""
        with self._news:
            if not self._news.wait_for(lambda: self._done and self._at_s > at_s, LIMIT_S):
                raise TimeoutError("the agent's training says nothing")
            return self._done, self._at_s, processes.own_cpu_s(self._pid), processes.cpu_s(self._pid)


class Flood:
    """``victim``: the agent's identity; ``bad``: that of the device that floods it."""

    def __init__(self, pid: int, home: Home, victim: Identity, bad: Identity, port: int) -> None:
        self._pid = pid
        self._home = home
        self._victim = victim
        self._bad = bad
        self._port = port

    async def measure(self) -> list[Row]:
        await processes.wait_at_rest(self._pid)
        rows = [Row(what="resident memory at rest", value=processes.memory_mb(self._pid)[0], unit="MB")]
        for what, messages in (
            ("10⁶ readings", self._readings()),
            ("10⁵ requests", self._requests()),
            ("10⁵ questions about modules", self._questions()),
        ):
            async with self._link() as link:
                rows += await self._flood(what, link, messages)
        async with self._link() as link:
            plan = await self._joined(link)
            for what, messages in (
                ("10⁶ events with 4,000 characters", self._events(plan)),
                ("10⁶ lines of output of 20,000 characters", self._output(plan)),
                ("10⁵ made-up tasks", self._tasks(plan)),
            ):
                rows += await self._flood(what, link, messages)
        for field in ("what", "fix", "detail"):
            async with self._link() as link:
                problem = {"code": "x", "what": "x", field: "x" * 1_000_000}
                await link.say_bytes(
                    msgspec.msgpack.encode({"type": "declined", "run": "r", "problem": problem})
                )
                await link.ended()
        return [*rows, *self._left()]

    async def beside(self, heard: Steps) -> list[Row]:
        """What the agent's own training loses to floods, all kinds in turn."""
        quiet: list[tuple[float, float]] = []
        flooded: list[tuple[float, float]] = []
        plan = self._plan()
        kinds = (
            self._readings(),
            self._requests(),
            self._events(plan),
            self._output(plan),
            self._tasks(plan),
        )
        await heard.speed(ROUND_S)
        for turn in range(ROUNDS):
            quiet.append(await heard.speed(ROUND_S))
            async with self._link() as link:
                flooding = asyncio.create_task(self._flood("", link, kinds[turn % len(kinds)]))
                flooded.append(await heard.speed(ROUND_S))
                flooding.cancel()
                await asyncio.gather(flooding, return_exceptions=True)
        kept, by_clock = (
            ratios([each[way] for each in flooded], [each[way] for each in quiet]) for way in (0, 1)
        )
        what = "steps of a training beside it"
        return [
            Row(
                what=f"{what}, on two cores: in a flood ÷ without",
                value=median(kept),
                limit=SPEED_LEAST,
                at="least",
                note=spread(kept),
            ),
            Row(
                what=f"{what}, by the clock, who floods on the same machine",
                value=median(by_clock),
                note=spread(by_clock),
            ),
        ]

    async def _flood(self, what: str, link: Link, messages: Iterator[ms.Message]) -> list[Row]:
        """Floods with as many messages as can be sent in ``FLOOD_S``."""
        before, began_s, sent = processes.own_cpu_s(self._pid), time.monotonic(), 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLOOD_S):
                for message in messages:
                    await link.say(message)
                    sent += 1
        took_s = time.monotonic() - began_s
        used = 100 * (processes.own_cpu_s(self._pid) - before) / took_s
        read = sent - link.unread
        await link.lives()
        return [
            Row(
                what=f"{what}: processor time of the agent",
                value=used,
                unit="% of a core",
                limit=CPU_LIMIT_PCT,
                note=f"{read:,} were read in {took_s:.0f} s",
            ),
            self._descriptors(what),
        ]

    def _descriptors(self, what: str) -> Row:
        files = psutil.Process(self._pid).num_fds()
        return Row(what=f"{what}: its descriptors", value=files, limit=FILES_LIMIT)

    async def whole(self) -> list[Row]:
        """Floods with each kind to its last message."""
        rows: list[Row] = []
        async with self._link() as link:
            for what, messages in (("10⁶ readings", self._readings()), ("10⁵ requests", self._requests())):
                rows += await self._to_the_end(what, link, messages)
        async with self._link() as link:
            plan = await self._joined(link)
            for what, messages in (
                ("10⁶ events with 4,000 characters", self._events(plan)),
                ("10⁵ made-up tasks", self._tasks(plan)),
            ):
                rows += await self._to_the_end(what, link, messages)
        return [*rows, *self._left()]

    async def _to_the_end(self, what: str, link: Link, messages: Iterator[ms.Message]) -> list[Row]:
        began_s, sent = time.monotonic(), 0
        for message in messages:
            await link.say(message)
            sent += 1
        async with asyncio.timeout(LIMIT_S):
            while link.unread:  # noqa: ASYNC110  (told to nobody)
                await asyncio.sleep(0.01)
        took_s = time.monotonic() - began_s
        memory_mb = processes.memory_mb(self._pid)[0]
        note = f"{sent:,} were read in {took_s:.0f} s"
        return [
            Row(
                what=f"{what}: resident memory then",
                value=memory_mb,
                unit="MB",
                limit=MEMORY_LIMIT_MB,
                note=note,
            ),
            self._descriptors(what),
        ]

    def _left(self) -> list[Row]:
        peak = Path(f"/proc/{self._pid}/status").read_text().partition("VmHWM:")[2].split()[0]
        disk = sum(path.stat().st_size for path in self._home.runs.rglob("*") if path.is_file())
        return [
            Row(what="the most resident memory", value=int(peak) / 1e3, unit="MB", limit=MEMORY_LIMIT_MB),
            Row(what="what its runs' records take", value=disk / 1e6, unit="MB", limit=DISK_LIMIT_MB),
        ]

    @contextlib.asynccontextmanager
    async def _link(self) -> AsyncIterator[Link]:
        link = Link(self._bad, self._victim, self._port)
        await link.begun()
        try:
            yield link
        finally:
            await link.close()

    def _plan(self) -> Plan:
        devices = (self._bad.device_id, self._victim.device_id)
        return make_plan(
            RunSpec(script="train.py"),
            starter=devices[0],
            project=MANIFEST.digest,
            script="train.py",
            strategy="managed",
            roles={devices[0]: (Role.CHIEF,), devices[1]: (Role.WORKER,)},
            names=dict.fromkeys(devices, "laptop"),
            hosts=dict.fromkeys(devices, "127.0.0.1"),
        )

    async def _joined(self, link: Link) -> Plan:
        """A run of the flooder's, in which the agent waits for the launch."""
        plan = self._plan()
        await link.say(ms.Prepare(plan=plan, manifest=MANIFEST))
        async with asyncio.timeout(LIMIT_S):
            while not isinstance(message := await link.heard.get(), ms.Prepared):
                if isinstance(message, ms.Declined) and message.run == plan.run:
                    raise RuntimeError(str(message.problem))
        for event in (ev.RunPlanned(plan=plan), ev.RunPhaseChanged(run=plan.run, phase=Preparing())):
            await link.say(ms.EventTold(event=event))
        return plan

    def _readings(self) -> Iterator[ms.Message]:
        return (ms.TelemetrySent(reading=READING) for _ in range(1_000_000))

    def _questions(self) -> Iterator[ms.Message]:
        return (ms.ModulesAsked(question=number, modules=("keras",)) for number in range(100_000))

    def _requests(self) -> Iterator[ms.Message]:
        plan = self._plan()
        for _ in range(100_000):
            asked = msgspec.structs.replace(plan, run=new_run_id(), script="another.py")
            yield ms.Prepare(plan=asked, manifest=MANIFEST)

    def _events(self, plan: Plan) -> Iterator[ms.Message]:
        device = self._victim.device_id
        for done in range(1_000_000):
            event = ev.MemberPhaseChanged(
                run=plan.run, device=device, phase="training", words="x" * 4_000, done=done
            )
            yield ms.EventTold(event=event)

    def _output(self, plan: Plan) -> Iterator[ms.Message]:
        lines = LogLines(task="chief:0", stream="stdout", text="x" * 20_000)
        event = ev.MemberLogged(run=plan.run, device=self._bad.device_id, lines=lines)
        return (ms.EventTold(event=event) for _ in range(1_000_000))

    def _tasks(self, plan: Plan) -> Iterator[ms.Message]:
        for number in range(100_000):
            lines = LogLines(task=f"worker:{number}", stream="stdout", text="x")
            event = ev.MemberLogged(run=plan.run, device=self._bad.device_id, lines=lines)
            yield ms.EventTold(event=event)


MANIFEST = manifest_of(
    "train.py", [ProjectFile(path="train.py", size=len(SCRIPT), sha256=hashlib.sha256(SCRIPT).hexdigest())]
)
