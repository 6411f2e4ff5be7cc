"""The run that a message is about, in whichever field."""

from __future__ import annotations

import pytest

from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary.phases import Preparing
from core.vocabulary.traffic import run_of
from tests.core.cluster.laptops import RUN, plan_of
from tests.core.run.world import MANIFEST

PLANNED = ev.RunPlanned(plan=plan_of())
PREPARING = ev.RunPhaseChanged(run=RUN, phase=Preparing())


@pytest.mark.parametrize(
    "message",
    [
        ms.Prepare(plan=plan_of(), manifest=MANIFEST),
        ms.Launch(plan=plan_of()),
        ms.EventTold(event=PLANNED),
        ms.EventTold(event=PREPARING),
        ms.FilesWanted(run=RUN, total_bytes=0),
    ],
)
def test_a_message_names_its_run(message: ms.Message) -> None:
    assert run_of(message) == RUN


def test_other_messages_are_about_no_run() -> None:
    assert run_of(ms.BusyTold(busy=True)) is None
