"""``tandem tf-config SCRIPT``: a run's plan, and each member's TF_CONFIG exactly as written."""

from __future__ import annotations

import argparse
from typing import Any

from app.cli import spec
from app.cli.command_line import add_subcommand, node_of
from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen
from app.follower import Follower
from app.words import device_names
from app.words.advice_words import TERMINAL, advice_words
from core.vocabulary.answers import PlanMade
from core.vocabulary.commands import PlanRun
from core.vocabulary.ids import DeviceId
from core.vocabulary.text import plain


def add_tf_config(parsers: Any) -> None:
    parser = add_subcommand(
        parsers,
        "tf-config",
        "show who would do what in a run, and the TF_CONFIG of each",
        tf_config,
        json=True,
    )
    spec.add_arguments(parser)


async def tf_config(arguments: argparse.Namespace, screen: Screen) -> int:
    async with node_of(arguments) as follower:
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
