"""A run under way, as events: for whatever shows that one is."""

from __future__ import annotations

from core.vocabulary import events as ev
from core.vocabulary.ids import ProjectId
from core.vocabulary.phases import Phase, Preparing, Starting, Training
from core.vocabulary.plan import Member, Plan, Role, Task
from tests.app.laptops import RUN
from tests.core.fake_node import ME


def planned(script: str = "train.py") -> ev.RunPlanned:
    plan = Plan(
        run=RUN,
        starter=ME,
        project=ProjectId("d" * 64),
        script=script,
        members=(Member(device=ME, name="here"),),
        tasks=(Task(device=ME, role=Role.CHIEF, index=0),),
    )
    return ev.RunPlanned(plan=plan)


def phase(phase: Phase) -> ev.RunPhaseChanged:
    return ev.RunPhaseChanged(run=RUN, phase=phase)


def training() -> tuple[ev.Event, ...]:
    return planned(), phase(Preparing()), phase(Starting()), phase(Training())
