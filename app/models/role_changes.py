"""Applies a user's choice of a role to the draft of a run. Pure.

There is one chief: a new chief replaces the previous one.
"""

from __future__ import annotations

from dataclasses import replace

from app.models.draft import RunDraft
from core.vocabulary.ids import DeviceId
from core.vocabulary.plan import Plan, Role

Roles = tuple[Role, ...]


def roles_of(draft: RunDraft, plan: Plan | None, device: DeviceId) -> Roles:
    """The planned roles; the user's fixed ones if there is no plan yet; ``()`` if unknown."""
    if device in draft.left_out:
        return (Role.NONE,)
    if device in draft.roles:
        return draft.roles[device]
    return tuple(task.role for task in plan.tasks_of(device)) if plan is not None else ()


def with_roles(draft: RunDraft, plan: Plan | None, device: DeviceId, roles: Roles) -> RunDraft:
    """Gives ``device`` the ``roles``; ``(Role.NONE,)`` excludes it from the run."""
    before = roles_of(draft, plan, device)
    if Role.NONE in roles:
        return _left_out(draft, device)
    draft = replace(draft, left_out=draft.left_out - {device}, roles={**draft.roles, device: roles})
    members = [member.device for member in plan.members] if plan is not None else []
    others = [other for other in members if other != device and other not in draft.left_out]
    if Role.CHIEF in roles:
        for other in others:
            if Role.CHIEF in roles_of(draft, plan, other):
                took = before if before and Role.NONE not in before else (Role.WORKER,)
                draft = replace(draft, roles={**draft.roles, other: took})
    elif Role.CHIEF in before and others:
        # Somebody has to be chief.
        draft = replace(draft, roles={**draft.roles, others[0]: (Role.CHIEF,)})
    return _without_lone_shares(draft, device)


def swapped(draft: RunDraft, plan: Plan | None, one: DeviceId, other: DeviceId) -> RunDraft:
    """Swaps the roles of two devices, including taking no part."""
    ones, others = roles_of(draft, plan, one), roles_of(draft, plan, other)
    if not ones or not others or one == other:
        return draft
    left_out = set(draft.left_out) - {one, other}
    roles = dict(draft.roles)
    for device, given in ((one, others), (other, ones)):
        roles.pop(device, None)
        if Role.NONE in given:
            left_out.add(device)
        else:
            roles[device] = given
    draft = replace(draft, left_out=frozenset(left_out), roles=roles)
    return replace(draft, shares={}) if Role.NONE in (*ones, *others) else draft


def _left_out(draft: RunDraft, device: DeviceId) -> RunDraft:
    roles = {other: given for other, given in draft.roles.items() if other != device}
    shares = {other: share for other, share in draft.shares.items() if other != device}
    return replace(draft, left_out=draft.left_out | {device}, roles=roles, shares=shares)


def _without_lone_shares(draft: RunDraft, device: DeviceId) -> RunDraft:
    # Shares are for all or for none: a device that joins has none yet.
    return replace(draft, shares={}) if draft.shares and device not in draft.shares else draft
