import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from app.demo import agent as agent_module
from app.demo.agent import Agent
from core.supervisor.spawn import program
from core.vocabulary.answers import Refused, StateNow
from core.vocabulary.commands import GetState
from core.vocabulary.errors import TandemError

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.name != "posix", reason="the demo's agents are ended by POSIX signals"),
]


RUNS = "import subprocess, sys; i = sys.argv.index('agent', 5); sys.exit(subprocess.call(sys.argv[1:i]))"
"""Runs its arguments up to the second ``agent``: the first home overrides the later one."""


async def test_an_agent_starts_answers_and_ends_in_order(tmp_path: Path) -> None:
    agent = await Agent.start("anna", tmp_path / "anna")
    try:
        assert agent.state.me is not None
        assert agent.state.me.name == "anna"
        answer = await agent.connection.node.submit(GetState())
        assert isinstance(answer, StateNow)
        assert answer.state.me == agent.state.me
    finally:
        await agent.end()
    assert agent.state.stopped
    with pytest.raises(ProcessLookupError):
        os.kill(agent.pid, 0)


@pytest.mark.parametrize("name", ["app", "core"])
async def test_a_package_in_the_working_directory_is_not_run_in_our_place(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``python -m`` looks there first, and a project may well have packages of these names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()
    for module in ("__init__.py", "__main__.py"):
        (tmp_path / name / module).write_text("open('ran', 'w').close(); raise SystemExit(3)")
    agent = await Agent.start("anna", tmp_path / "anna")
    await agent.end()
    assert not list(tmp_path.rglob("ran"))


async def test_a_killed_agent_is_noticed_by_name(tmp_path: Path) -> None:
    agent = await Agent.start("ben", tmp_path / "ben")
    try:
        async with asyncio.timeout(60):
            while "ready on port" not in agent.log_end():  # noqa: ASYNC110 (a thread of its own writes the log)
                await asyncio.sleep(0.01)
        os.kill(agent.pid, signal.SIGKILL)
        problem = await asyncio.wait_for(asyncio.shield(agent.connection.lost), 60)
        assert problem.what == "ben has ended."
        assert "ready on port" in problem.detail
        assert isinstance(await agent.connection.node.submit(GetState()), Refused)
    finally:
        await agent.end()


async def test_an_agent_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = [sys.executable, "-c", "import sys; sys.exit('no luck today')"]
    monkeypatch.setattr(agent_module, "program", lambda: program)
    with pytest.raises(TandemError, match="cleo has ended") as failed:
        await Agent.start("cleo", tmp_path / "cleo")
    assert "no luck today" in failed.value.problem.detail


async def test_an_agent_whose_home_is_held_says_so_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await Agent.start("anna", tmp_path / "anna")
    try:
        held = [*program(), "agent", "--jsonl", "--home", str(tmp_path / "anna")]
        monkeypatch.setattr(agent_module, "program", lambda: [sys.executable, "-c", RUNS, *held])
        with pytest.raises(TandemError, match=rf"ben cannot go on: .*\(process {first.pid}\) already runs"):
            await Agent.start("ben", tmp_path / "ben")
    finally:
        await first.end()


async def test_an_agent_that_never_gets_ready_is_ended_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[int] = []
    program = [sys.executable, "-c", "import signal; signal.pause()"]
    monkeypatch.setattr(agent_module, "program", lambda: program)
    spawn = asyncio.create_subprocess_exec

    async def spawned(*argv: str, **options: object) -> asyncio.subprocess.Process:
        process = await spawn(*argv, **options)  # type: ignore[arg-type]
        began.append(process.pid)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", spawned)
    with pytest.raises(TandemError, match=r"anna did not say within 0\.2 s that it is ready"):
        await Agent.start("anna", tmp_path / "anna", ready_s=0.2)
    (pid,) = began
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
