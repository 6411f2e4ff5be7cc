"""``tandem run`` on a laptop that another one asked first: asks this user, and takes part.

Only if the command runs the node itself. That node ends with the command, and its part in the other laptop's
run would end with it; an agent or a window keeps running and asks its own user.
"""

from __future__ import annotations

from collections.abc import AsyncIterable

from app.cli.agent_talk import consent_lines, decide
from app.cli.interrupts import Interrupts, unless
from app.cli.prompts import Asker
from app.cli.screen import Screen
from app.follower import Follower
from core.vocabulary.commands import AnswerConsent, Decision
from core.vocabulary.errors import Problem
from core.vocabulary.events import ConsentAsked
from core.vocabulary.ids import RunId
from core.vocabulary.limits import CONSENT_S, SLACK_S
from core.vocabulary.state import State
from core.vocabulary.text import plain

REQUESTS_S = {"train-crossed": 30.0, "busy": 30.0, "would-be-alone": 3.0, "device-busy": 3.0}
"""Reasons why this laptop's own run did not begin, and seconds to wait for the other laptop's request. A
laptop that is merely busy with others sends none."""
SHOWN_S = 15.0
"""Longest time from this user's yes until the run is shown here."""


async def request(follower: Follower, problem: Problem) -> RunId | None:
    """The other laptop's run that wants this laptop, or that it is already in, if its own failed because
    of ``problem``. None: there is none, or the node has other clients who ask."""
    limit_s = REQUESTS_S.get(problem.code)
    if limit_s is None or not follower.own:
        return None
    return await follower.until(_wanted, limit_s)


async def join(
    follower: Follower,
    screen: Screen,
    run: RunId,
    interrupts: Interrupts,
    keyboard: AsyncIterable[bytes] | None,
) -> bool:
    """Whether this laptop takes part. Asks the person unless already allowed; Ctrl-C means no."""
    consent = next((consent for consent in follower.state.consents if consent.run == run), None)
    limit_s = SHOWN_S
    if consent is not None:
        decision = await interrupts.unless(_decide(follower, screen, consent, keyboard))
        await follower.node.submit(AnswerConsent(run=run, decision=decision or "no"))
        if decision is None:
            return False
        limit_s = SHOWN_S if decision != "no" else 0.0
    shown = await interrupts.unless(follower.until(lambda state: _is_shown(state, run), limit_s))
    return shown is not None


async def _decide(
    follower: Follower, screen: Screen, consent: ConsentAsked, keyboard: AsyncIterable[bytes] | None
) -> Decision:
    """``no`` if nobody can answer, or if the request is withdrawn meanwhile."""
    name = plain(consent.name, 40)
    for line in consent_lines(consent, name, follower.state):
        screen.say(line)
    if keyboard is None:
        screen.say(
            "Refused: nobody can answer here without a terminal. An agent can: tandem agent --allow DEVICE."
        )
        return "no"
    async with Asker(screen, keyboard) as asker:
        decision = await unless(
            follower.until(lambda state: _is_gone(state, consent.run), CONSENT_S + 2 * SLACK_S),
            decide(follower.node, asker, screen, consent.run, name),
        )
    if decision is None and _is_gone(follower.state, consent.run):
        screen.say(f"{name} withdrew its request.")
    return decision or "no"


def _wanted(state: State) -> RunId | None:
    if state.consents:
        return state.consents[0].run
    run = state.run
    if run is None or run.over or (state.me is not None and run.plan.starter == state.me.device):
        return None
    return run.plan.run


def _is_shown(state: State, run: RunId) -> bool | None:
    return True if state.run is not None and state.run.plan.run == run else None


def _is_gone(state: State, run: RunId) -> bool | None:
    return None if any(consent.run == run for consent in state.consents) else True
