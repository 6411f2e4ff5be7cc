"""Writes TF_CONFIG, and checks that it can work. Nothing else writes it. Pure.

Format: tensorflow.org, *Distributed training with TensorFlow*, "Setting up the TF_CONFIG environment
variable".
"""

from __future__ import annotations

import ipaddress
import json

from msgspec.structs import replace

from core.vocabulary.errors import TandemError
from core.vocabulary.plan import Plan, Role, Task

_LOOPBACK = "127.77"
"""Unlikely to be an address where another program listens on a shared loopback."""
_IN_CLUSTER = (Role.CHIEF, Role.WORKER, Role.PS)


def tf_config(plan: Plan, task: Task) -> str:
    """The exact text for one task; ``""`` for a single process. Only ``task`` differs between members.

    Sealed members use loopback addresses in their own networks; relays forward from there.
    """
    if plan.solo:
        return ""
    return json.dumps({"cluster": cluster(plan), "task": {"type": str(task.role), "index": task.index}})


def cluster(plan: Plan) -> dict[str, list[str]]:
    """Addresses by role, by index. The evaluator is not part of the cluster: it only reads checkpoints."""
    found: dict[str, list[str]] = {}
    for role in _IN_CLUSTER:
        tasks = sorted((task for task in plan.tasks if task.role is role), key=lambda task: task.index)
        if tasks:
            found[str(role)] = [address(inside(plan, task)) for task in tasks]
    return found


def inside(plan: Plan, task: Task) -> Task:
    """The task's address for TensorFlow; in a sealed run, a separate loopback address for each task.

    Ports differ too: TensorFlow listens on every address of its network, including those where the relay
    listens for other tasks.
    """
    if plan.exchange != "sealed":
        return task
    ports: list[int] = []
    for each in plan.tasks:
        port = each.port
        while port in ports:
            port = port + 1 if port < 65535 else 1024
        ports.append(port)
    place = plan.tasks.index(task)
    high, low = divmod(place, 254)
    return replace(task, host=f"{_LOOPBACK}.{high}.{low + 1}", port=ports[place])


def address(task: Task) -> str:
    """``host:port``; IPv6 in brackets."""
    return f"[{task.host}]:{task.port}" if ":" in task.host else f"{task.host}:{task.port}"


def check(plan: Plan) -> None:
    """Raises ``TandemError`` unless every member can reach every other at its address in TF_CONFIG."""
    roles = [(task.role, task.index) for task in plan.tasks]
    chiefs = [task for task in plan.tasks if task.role is Role.CHIEF]
    if len(chiefs) != 1 or plan.tasks[0].role is not Role.CHIEF or len(set(roles)) != len(roles):
        raise _broken("does not have exactly one chief and one device for each task")
    if plan.solo:
        return
    devices = {member.device for member in plan.members}
    for task in plan.tasks:
        if task.device not in devices:
            raise _broken(f"gives {task.name} to a device that is not in the run")
        if not task.host or not 1024 <= task.port <= 65535:
            raise _broken(f"has no address for {task.name}")
    taken: dict[str, Task] = {}
    for task in plan.tasks:
        other = taken.setdefault(address(task), task)
        if other is not task:
            raise TandemError(
                code="same-address",
                what=f"{other.name} and {task.name} would both listen at {address(task)}.",
                fix="Start the run again; another port is chosen then.",
            )
    _check_hosts(plan)


def _check_hosts(plan: Plan) -> None:
    """Refuses ``localhost`` beside other hosts: it means each machine itself, and the cluster would hang."""
    loopback = [task for task in plan.tasks if is_loopback(task.host)]
    if loopback and len(loopback) < len(plan.tasks):
        name = plan.member(loopback[0].device).name
        raise TandemError(
            code="localhost-in-cluster",
            what=f"{name}'s address would be {loopback[0].host}, which on each laptop means itself.",
            fix=f"Connect {name} by its network address, and put all laptops on the same network.",
        )


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _broken(what: str) -> TandemError:
    return TandemError(
        code="broken-plan",
        what=f"The run's plan {what}.",
        fix="Start the run again. If it happens again, update Tandem on all laptops.",
    )
