"""Runs all of the doctor's checks concurrently, each with its limit. On the core loop; blocking ones in
threads."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence

from core.doctor import files, machine, network, reach, software
from core.doctor.view import Examined, error
from core.vocabulary.answers import Finding

LIMIT_S = 20.0
_log = logging.getLogger(__name__)

Found = Finding | Sequence[Finding] | None
Check = Callable[[Examined], Found]
AsyncCheck = Callable[[Examined], Awaitable[Found]]
Checks = Sequence[Check | AsyncCheck]

CHECKS: Checks = (
    network.check_interfaces,
    network.check_mdns,
    network.check_port,
    network.check_firewall,
    network.check_isolation,
    reach.check_reach,
    software.check_peers,
    software.check_system,
    software.check_python,
    software.check_tensorflow,
    machine.check_gpu,
    machine.check_memory,
    machine.check_clock,
    machine.check_sealing,
    machine.check_walls,
    machine.check_sleep,
    files.check_home,
    files.check_key,
    files.check_socket,
    files.check_disk,
)


async def examine(
    view: Examined, *, deep: bool = False, checks: Checks = CHECKS, limit_s: float = LIMIT_S
) -> tuple[Finding, ...]:
    """The findings in the order of ``checks``. Never raises: a check that fails is itself a finding."""
    runs = [_run_check(check, view, limit_s) for check in checks]
    if deep:
        runs.append(_run_check(software.check_loading, view, software.LOAD_LIMIT_S + limit_s))
    return tuple(finding for found in await asyncio.gather(*runs) for finding in found)


async def _run_check(check: Check | AsyncCheck, view: Examined, limit_s: float) -> Sequence[Finding]:
    name = check.__name__.removeprefix("check_")
    try:
        async with asyncio.timeout(limit_s):
            if inspect.iscoroutinefunction(check):
                found: Found = await check(view)
            else:
                found = await asyncio.to_thread(check, view)  # type: ignore[arg-type]
    except TimeoutError:
        return [_failed(name, f"did not end within {limit_s:g} s")]
    except Exception as failure:
        _log.exception("the check %s failed", name)
        return [_failed(name, f"failed ({type(failure).__name__})")]
    if found is None:
        return []
    return [found] if isinstance(found, Finding) else found


def _failed(name: str, how: str) -> Finding:
    return error(
        f"check-{name}",
        "doctor",
        f"The check of {name} {how}.",
        "Check again; logs/tandem.log in the home has the details.",
    )
