"""Members of a run that never paired, introduced to each other by its starter: who, until when, and what they
may send. Pure.

The plan pins the node of each member, so that members can go on together if they lose the starter
(``core.run.succession``). They are linked from the launch until the run can no longer go on without it.

Security invariant: an introduction gives another member what the starter was allowed in this run, and nothing
else. Only a paired laptop introduces others; a stand-in that is not paired introduces nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Self

from core.home.certificate import check_peer_certificate, device_id, is_named_by_its_key
from core.home.trust import TrustStore
from core.net.address import Address
from core.run.resume.plan import owner_of
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Outcome, Stopped
from core.vocabulary.plan import Member, Plan, RunOwner
from core.vocabulary.text import fit_name
from core.vocabulary.traffic import run_of

FOLLOWS_S = limits.CONSENT_S
"""How long members that lost their starter stay linked if no run follows."""
FIRST_PORT = 1024
_OF_A_STARTER = (
    *(ms.FilesFrom, ms.GiveFiles, ms.Launch, ms.StopAsked, ms.GoOnWithout, ms.RunAbandoned, ms.EventTold),
    ms.OutputsReceived,
)
_OF_A_MEMBER = (
    *(ms.FilesWanted, ms.Prepared, ms.Declined, ms.EventTold, ms.StatusTold, ms.OutputsOffered, ms.StopAsked),
)


@dataclass(frozen=True, slots=True)
class Introduced:
    """A member's node. ``address``: where it listened when the plan was made, ``host:port``."""

    certificate: bytes
    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Introductions:
    """``owner`` None: nobody is introduced. ``by``: the paired laptop that introduced them."""

    me: DeviceId
    owner: RunOwner | None = None
    by: DeviceId | None = None
    nodes: Mapping[DeviceId, Introduced] = field(default_factory=lambda: MappingProxyType({}))
    plan: Plan | None = None
    """The plan of the run in which they were introduced."""
    runs: tuple[RunId, ...] = ()
    """That run and those that go on with it without its owner, if this laptop was in them."""
    stand_in: DeviceId | None = None
    """The starter of the newest one; None: it is the owner."""
    asked: Mapping[DeviceId, RunId] = field(default_factory=lambda: MappingProxyType({}))
    """The newest run that each one was allowed to ask for."""
    lost: bool = False
    """This laptop ended its part in the newest run, to go on without its starter."""
    ends_in_s: float | None = None
    """None: for as long as the newest run is under way."""

    def among(self, store: TrustStore) -> dict[DeviceId, Introduced]:
        """The members to link with. The user's own decisions, to pair and to forget, come first."""
        if self.by is None or store.peer(self.by) is None:
            return {}
        return {
            device: node
            for device, node in self.nodes.items()
            if store.peer(device) is None and device not in store.revoked
        }

    def planned(self, plan: Plan, store: TrustStore) -> Self:
        """A run begins here, or its plan is complete now."""
        if self.runs[-1:] == (plan.run,):
            return self
        if plan.owner is not None and plan.owner == self.owner:
            runs = (*self.runs, plan.run)
            return replace(self, runs=runs, stand_in=plan.starter, lost=False, ends_in_s=None)
        is_complete = all(task.port for task in plan.tasks)
        if store.peer(plan.starter) is None or not plan.outlasts_losses or not is_complete:
            return self if self.plan is None else type(self)(self.me)
        others = [each for each in plan.members if each.device not in (self.me, plan.starter)]
        nodes = {each.device: node for each in others if (node := _node_of(plan, each)) is not None}
        return type(self)(
            self.me,
            owner_of(plan),
            plan.starter,
            MappingProxyType(nodes),
            plan,
            runs=(plan.run,),
            stand_in=None if plan.owner is None else plan.starter,
        )

    def ended(self, run: RunId, phase: Outcome) -> Self:
        """Only the last messages follow, unless this laptop ended its part to go on without the starter."""
        if self.plan is None or self.runs[-1:] != (run,):
            return self
        own = self.plan.member(self.me).name
        lost = isinstance(phase, Stopped) and phase.goes_on and phase.by == own and self.stand_in != self.me
        return replace(self, lost=lost, ends_in_s=FOLLOWS_S if lost else limits.FAREWELL_S)

    def received(self, device: DeviceId, message: ms.Message) -> Self | None:
        """After a message from an introduced laptop; None: the message is refused.

        Answers to this laptop's own questions (``core.link.questions``) do not come here.
        """
        if device not in self.nodes or not self._may_send(device, message):
            return None
        if not isinstance(message, ms.Prepare):
            return self
        return replace(self, asked=MappingProxyType({**self.asked, device: message.plan.run}))

    def _may_send(self, device: DeviceId, message: ms.Message) -> bool:
        match message:
            case ms.BusyTold(seal=None, name=""):
                return True
            case ms.Prepare(plan=plan):
                return self._may_stand_in(device, plan)
            case ms.CheckpointAsked(run=run) | ms.CheckpointWanted(run=run) | ms.CheckpointTold(run=run):
                return self.lost and run in self.runs
            case ms.LoadAsked():
                return device == self.stand_in and self.ends_in_s is None
        about = run_of(message)
        if isinstance(message, _OF_A_STARTER) and about == self.asked.get(device):
            return True
        return isinstance(message, _OF_A_MEMBER) and about in self.runs and self.stand_in == self.me

    def _may_stand_in(self, device: DeviceId, plan: Plan) -> bool:
        assert self.plan is not None
        known = {member.device for member in self.plan.members}
        return (
            self.lost
            and plan.starter == device
            and plan.owner == self.owner
            and plan.resume is not None
            and plan.resume.run in self.runs
            and known.issuperset(member.device for member in plan.members)
        )


def _node_of(plan: Plan, member: Member) -> Introduced | None:
    """None: none is pinned, or not in the form of Tandem's own certificates."""
    pin, host = member.node, next((task.host for task in plan.tasks_of(member.device)), "")
    if pin is None or not host or not FIRST_PORT <= pin.port < 2**16:
        return None
    # Security invariant: a device is its certificate, so that nobody is introduced in another one's place.
    if device_id(pin.certificate) != member.device:
        return None
    try:
        check_peer_certificate(pin.certificate)
    except TandemError:
        return None
    # Security invariant: nobody takes the name by which OpenSSL finds another pin.
    if not is_named_by_its_key(pin.certificate):
        return None
    return Introduced(pin.certificate, fit_name(member.name), str(Address(host, pin.port)))
