"""A user's permission for another laptop's code, compared with a request. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Annotated, Literal, get_args

import msgspec

from core.vocabulary import wire
from core.vocabulary.access import Grant, is_within, least
from core.vocabulary.bounds import Word
from core.vocabulary.ids import ProjectId
from core.vocabulary.plan import Plan, StrategyKind

Network = Literal["none", "downloads", "open"]
"""Network access besides the run's members, narrowest first. ``open``: everything that this laptop can
reach."""
Walls = Literal["default", "none"]
"""Confinements of a script on this laptop, narrowest first. ``none``: nothing confines it."""
Gap = Literal["network", "processes"]
"""Gaps that walls leave on an older system: calls to any address; signals to other programs of the user."""
Part = Literal["older", "arguments", "strategy", "network", "walls", "folders", "data"]
"""How a request exceeds a permission for the same files. ``older``: only the files and arguments of the
permission were recorded."""

_NETWORKS: tuple[Network, ...] = get_args(Network)
_WALLS: tuple[Walls, ...] = get_args(Walls)


class Permission(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A project that may run here, and its access. Also the form of a request for that."""

    project: Annotated[ProjectId, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    arguments: Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{64})?$")] = ""
    """See ``hash_of``: arguments can turn a harmless script into another one (``--output``, ``--load``)."""
    also: tuple[Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{64})?$")], ...] = ()
    """Further arguments, those of a sweep's other trials."""
    strategy: StrategyKind | None = None
    """None: from an older Tandem, which recorded only files and arguments. It covers nothing."""
    network: Network = "none"
    walls: Walls = "default"
    folders: tuple[str, ...] = ()
    """Files and folders of this laptop, beside its own, that the script may read."""
    writes: tuple[str, ...] = ()
    """The ones that it may change, too."""
    data: tuple[Word, ...] = ()
    """Digests of data that is sent along."""

    @property
    def argument_sets(self) -> frozenset[str]:
        return frozenset((self.arguments, *self.also))


def network_of(plan: Plan, walls: Walls, gaps: Collection[Gap] = ()) -> Network:
    """The network access of a plan's script on another member's laptop, inside such walls."""
    held = plan.exchange == "sealed" or (walls == "default" and "network" not in gaps)
    return ("downloads" if plan.downloads else "none") if held else "open"


def asked_by(
    plan: Plan,
    walls: Walls,
    gaps: Collection[Gap] = (),
    opened: Collection[Grant] = (),
    data: Collection[str] = (),
) -> Permission:
    """The permission that a plan needs on this laptop, inside ``walls``. ``opened``: for its script.
    ``data``: digests of data to send here. A trial asks for the arguments of all trials."""
    arguments = hash_of(plan.arguments)
    others = {hash_of(each) for each in plan.trial.argument_sets} if plan.trial is not None else set[str]()
    writes = least(each.path for each in opened if each.write)
    return Permission(
        project=plan.project,
        arguments=arguments,
        also=tuple(sorted(others - {arguments})),
        strategy=plan.strategy,
        network=network_of(plan, walls, gaps),
        walls=walls,
        folders=least((each.path for each in opened if not each.write), but=writes),
        writes=writes,
        data=tuple(sorted(set(data))),
    )


def hash_of(arguments: Sequence[str]) -> str:
    """The digest of a script's arguments; ``""`` for none."""
    return hashlib.sha256(wire.to_json(tuple(arguments))).hexdigest() if arguments else ""


def covers(allowed: Permission, asked: Permission) -> bool:
    """Whether ``asked`` needs no question, as ``allowed`` is the same or wider."""
    return allowed.project == asked.project and not beyond(allowed, asked)


def beyond(allowed: Permission, asked: Permission) -> tuple[Part, ...]:
    """How ``asked`` exceeds ``allowed``, files aside."""
    wider: dict[Part, bool] = {
        "older": allowed.strategy is None,
        "arguments": not asked.argument_sets <= allowed.argument_sets,
        "strategy": allowed.strategy is not None and allowed.strategy != asked.strategy,
        "network": _NETWORKS.index(asked.network) > _NETWORKS.index(allowed.network),
        "walls": _WALLS.index(asked.walls) > _WALLS.index(allowed.walls),
        "folders": not all(is_within(each, (*allowed.folders, *allowed.writes)) for each in asked.folders)
        or not all(is_within(each, allowed.writes) for each in asked.writes),
        "data": not set(asked.data) <= set(allowed.data),
    }
    if wider["older"]:
        return ("older", "arguments") if wider["arguments"] else ("older",)
    return tuple(part for part, is_wider in wider.items() if is_wider)
