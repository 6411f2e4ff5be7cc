"""Reads this process's membership in a launcher's run from its environment.

Pure. TF_CONFIG as TensorFlow documents it (chief and workers, or workers alone), Vertex AI's CLUSTER_SPEC,
Slurm's variables (man srun, "OUTPUT ENVIRONMENT VARIABLES"), and the index of a Kubernetes Indexed Job whose
pods have stable host names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from core.net.address import parse
from core.vocabulary.errors import TandemError

FIRST_PORT = 20000
PORTS = 12000
"""Below the ports that systems assign automatically (Linux: from 32768)."""
MOST_MEMBERS = 1024


@dataclass(frozen=True, slots=True)
class Membership:
    """``addresses``: ``host:port`` of every member, by rank. ``run``: a name that is the same on all
    members."""

    run: str
    rank: int
    addresses: tuple[str, ...]

    @property
    def beside(self) -> tuple[int, ...]:
        """The ranks on this member's host, including its own."""
        hosts = [parse(address, 0).host for address in self.addresses]
        return tuple(rank for rank, host in enumerate(hosts) if host == hosts[self.rank])

    @property
    def tf_config(self) -> str:
        """The first member is the chief, whatever the launcher calls it; ``""`` for a single member."""
        if len(self.addresses) == 1:
            return ""
        cluster = {"chief": [self.addresses[0]], "worker": list(self.addresses[1:])}
        kind, index = ("worker", self.rank - 1) if self.rank else ("chief", 0)
        return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})

    def name(self, rank: int) -> str:
        return f"worker:{rank - 1}" if rank else "chief:0"


def read(environ: Mapping[str, str]) -> Membership:
    """Raises ``TandemError`` where no launcher is found, or its variables contradict themselves."""
    if "TF_CONFIG" in environ:
        return _by_roles(environ, "TF_CONFIG", (("chief", "master"), ("worker",)))
    if "CLUSTER_SPEC" in environ:
        return _by_roles(environ, "CLUSTER_SPEC", (("workerpool0",), ("workerpool1",)))
    if "SLURM_PROCID" in environ:
        return _of_slurm(environ)
    if "JOB_COMPLETION_INDEX" in environ:
        return _of_indexed_job(environ)
    raise TandemError(
        code="not-launched",
        what="No launcher says which member of a run this is.",
        fix="Start it with srun, as an Indexed Job, or with TF_CONFIG set; docs/cluster.md shows how.",
    )


def _by_roles(environ: Mapping[str, str], name: str, roles: Sequence[Sequence[str]]) -> Membership:
    try:
        config: Any = json.loads(environ[name])
        cluster: dict[str, list[str]] = config["cluster"]
        kind, index = str(config["task"]["type"]), int(config["task"]["index"])
        known = [role for alike in roles for role in alike]
        if others := [role for role in cluster if role not in known and cluster[role]]:
            _refuse(name, f"it has a {others[0]}, but all members of such a run do the same work")
        members = [(role, at) for role in known for at in range(len(cluster.get(role, ())))]
        addresses = tuple(_with_port(cluster[role][at]) for role, at in members)
        rank = members.index((kind, index))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        _refuse(name, f"it cannot be understood ({type(error).__name__}: {error})")
    return _checked(name, Membership(environ.get("TANDEM_RUN", "launched"), rank, addresses))


def _of_slurm(environ: Mapping[str, str]) -> Membership:
    try:
        nodes = hosts(environ.get("SLURM_STEP_NODELIST") or environ["SLURM_JOB_NODELIST"])
        per_node = tasks(environ.get("SLURM_STEP_TASKS_PER_NODE") or environ["SLURM_TASKS_PER_NODE"])
        job, rank = int(environ["SLURM_JOB_ID"]), int(environ["SLURM_PROCID"])
        count = int(environ.get("SLURM_STEP_NUM_TASKS") or environ["SLURM_NTASKS"])
    except (ValueError, KeyError) as error:
        _refuse("Slurm", f"its variables cannot be understood ({type(error).__name__}: {error})")
    first = FIRST_PORT + job * 16 % PORTS
    places = [
        f"{node}:{first + at}" for node, here in zip(nodes, per_node, strict=False) for at in range(here)
    ]
    if len(places) != count:
        _refuse("Slurm", f"it counts {count} tasks, but {len(places)} on its nodes")
    run = f"slurm-{job}-{environ.get('SLURM_STEP_ID', '0')}-{environ.get('SLURM_RESTART_COUNT', '0')}"
    return _checked("Slurm", Membership(run, rank, tuple(places)))


def _of_indexed_job(environ: Mapping[str, str]) -> Membership:
    try:
        rank, count = int(environ["JOB_COMPLETION_INDEX"]), int(environ["TANDEM_MEMBERS"])
        pattern = environ["TANDEM_HOST"]
    except (ValueError, KeyError) as error:
        _refuse(
            "The job", f"TANDEM_MEMBERS and TANDEM_HOST (as in digits-{{index}}.digits) are needed: {error}"
        )
    if "{index}" not in pattern or not 0 < count <= MOST_MEMBERS:
        _refuse("The job", "TANDEM_HOST must contain {index}, TANDEM_MEMBERS the number of members")
    addresses = tuple(_with_port(pattern.replace("{index}", str(index))) for index in range(count))
    return _checked("The job", Membership(environ.get("TANDEM_RUN", "job"), rank, addresses))


def hosts(text: str) -> list[str]:
    """Expands Slurm's list of nodes: ``gpu[01-03,7],login`` is gpu01, gpu02, gpu03, gpu7, login."""
    found: list[str] = []
    for entry in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        head, bracket, rest = entry.partition("[")
        if not bracket:
            found.append(head)
            continue
        inside, _, tail = rest.partition("]")
        for span in inside.split(","):
            first, _, last = span.partition("-")
            numbers = range(int(first), int(last or first) + 1)
            if len(found) + len(numbers) > MOST_MEMBERS:
                raise ValueError(f"more than {MOST_MEMBERS} nodes")
            found += (
                f"{head}{number:0{len(first)}}{end}" for number in numbers for end in hosts(tail) or [""]
            )
    return found


def tasks(text: str) -> list[int]:
    """Expands Slurm's tasks for each node: ``2(x3),1`` is 2, 2, 2, 1."""
    found: list[int] = []
    for entry in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d{1,4})\))?", entry)
        if match is None:
            raise ValueError(entry)
        found += [int(match[1])] * int(match[2] or 1)
    return found


def _with_port(address: str) -> str:
    """The address, with the default port if it has none."""
    at = parse(address, FIRST_PORT)
    return f"[{at.host}]:{at.port}" if ":" in at.host else f"{at.host}:{at.port}"


def _checked(name: str, membership: Membership) -> Membership:
    members = len(membership.addresses)
    if not 0 <= membership.rank < members <= MOST_MEMBERS:
        _refuse(name, f"this is member {membership.rank} of {members}")
    if len(set(membership.addresses)) != members:
        _refuse(name, "two members have the same address")
    return membership


def _refuse(name: str, why: str) -> NoReturn:
    raise TandemError(
        code="bad-launch",
        what=f"{name} does not say who the members of the run are: {why}.",
        fix="Check what the launcher sets; docs/cluster.md has an example for each.",
    )
