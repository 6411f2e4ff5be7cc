"""``tandem tf-config SCRIPT``: a run's plan, and each member's TF_CONFIG exactly as written."""

from __future__ import annotations

import argparse

from app.cli import spec
from app.cli.command_line import node_subcommand
from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen
from app.follower import Follower
from app.words import device_names
from app.words.advice_words import TERMINAL, advice_words
from core.vocabulary.answers import PlanMade
from core.vocabulary.commands import PlanRun
from core.vocabulary.ids import DeviceId
from core.vocabulary.text import plain


@node_subcommand("show who would do what in a run, and the TF_CONFIG of each", *spec.ARGUMENTS, resumes=False)
async def tf_config(arguments: argparse.Namespace, screen: Screen, follower: Follower) -> int:
    wanted = await spec.spec_of(arguments, follower, screen.say)
    made = await follower.submit(PlanRun(spec=wanted), PlanMade)
    if screen.json:
        screen.result(
            {
                "ok": True,
                "plan": made.plan,
                "tf_configs": made.tf_configs,
                "expectation": made.expectation,
                "advice": advice_words(made.advice, TERMINAL),
            }
        )
    else:
        _show(made, follower, screen)
    return ExitCode.OK


def _show(made: PlanMade, follower: Follower, screen: Screen) -> None:
    names = device_names.names_of(follower.state, (member.device for member in made.plan.members))
    if made.plan.solo:
        screen.say(f"{names[made.plan.chief.device]} alone: one process, no cluster, no TF_CONFIG.")
    for task in made.plan.tasks:
        config = made.tf_configs.get(f"{task.device}/{task.name}")
        if config is not None:
            screen.say(f"{task.name} on {names[DeviceId(task.device)]}:", "bold")
            screen.say(config)
    for words in (made.expectation, advice_words(made.advice, TERMINAL)):
        if words:
            screen.say(plain(words, 400))
