"""``tandem run --again RUN``: what an earlier run was asked for."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from app.cli.following import Following
from core.answers import RunDetails
from core.cluster.plan import RunSpec
from core.commands import GetRun
from core.errors import TandemError
from core.ids import DeviceId, RunId
from core.state import State
from core.text import plain


async def spec_of(following: Following, run: RunId, *, others_said: bool) -> RunSpec:
    """With exactly the laptops that took part. Raises ``TandemError`` for a run that can't be repeated here.

    ``others_said``: who takes part now is said on the command line, so nobody of then is missed.
    """
    entry = (await following.submit(GetRun(run=run), RunDetails)).entry
    if not entry.source:
        raise TandemError(
            code="run-of-another",
            what=f"The run {entry.run} was started on another laptop, and its script lies there.",
            fix="Run it again there, or name a script of this laptop.",
        )
    if entry.spec is None:  # kept by an earlier Tandem
        return RunSpec(script=entry.source, arguments=entry.arguments)
    me = following.state.me
    then = dict(zip(entry.device_ids, entry.devices, strict=False))
    others = {device: name for device, name in then.items() if me is None or device != me.device}
    if not others_said:
        _check_paired(following.state, others)
    return replace(entry.spec, script=entry.source, devices=tuple(others), solo=not others)


def _check_paired(state: State, then: Mapping[DeviceId, str]) -> None:
    for device, name in then.items():
        known = state.devices.get(device)
        if known is None or not known.paired:
            raise TandemError(
                code="not-paired",
                what=f"{plain(name, 40)} took part then and is not paired with this laptop now.",
                fix="Pair it again (tandem pair), or say who is to take part now: --with NAME,…, or --solo.",
            )
