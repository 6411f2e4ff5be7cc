"""Drives the coordinator's machine: sends messages and files to members, receives outputs. On the core
loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from core.project.copy import working_copy_of
from core.project.outputs import collect_outputs, receive_outputs
from core.project.send import ListingReader, ManifestReader
from core.run import outputs
from core.run.context import RunContext
from core.run.coordinator import machine
from core.run.coordinator import state as co
from core.run.planner import Planned
from core.run.transfer import data_readers, problem_of
from core.runtime.timers import CancelTimer, SetTimer, TimerFired, Timers
from core.supervisor.trainers import is_walled
from core.transfer.offer import OfferedFiles
from core.vocabulary import run_folder
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import MemberLogged, Shown
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.manifest import Manifest
from core.vocabulary.paths import shown
from core.vocabulary.peer_messages import Message
from core.vocabulary.progress import LogLines
from core.vocabulary.run_folder import OUTPUTS
from core.vocabulary.traffic import From, LinkLost, Send

_GONE = Problem(code="link-gone", what="its link is gone.")


class CoordinatorDriver:
    """One run that this node started. ``on_over`` is called once, at its end."""

    def __init__(
        self,
        context: RunContext,
        planned: Planned,
        pressed_s: float,
        *,
        emit: Callable[[Shown], None],
        on_over: Callable[[], None],
    ) -> None:
        self.context = context
        project = planned.project
        self._checkpoint = planned.checkpoint
        self.state = co.coordinate(context.me, planned.request, pressed_s, falls_back=planned.falls_back)
        self._source = Path(project.folder)
        self._data = project.data
        self._remarks = (*project.warnings, *planned.remarks)
        self._emit = emit
        self._on_over = on_over
        self._over = False
        self._timers = Timers[Wait](context.clock, lambda wait: self.handle(TimerFired(wait)))
        self._taking: asyncio.Task[None] | None = None
        self._offers: list[Callable[[], None]] = []
        """Functions that withdraw the offers."""

    @property
    def folder(self) -> Path:
        return self.context.folder(self.state.plan.run)

    def begin(self) -> None:
        self.handle(co.Begun())
        for device in [device for device in self.state.parts if device != self.context.me]:
            for reader in data_readers(self._data):
                self._offer(device, reader)
        for words in self._remarks:
            self.remark(words)

    def handle(self, input: co.Input) -> None:
        # The run's clock may have stood still while this laptop slept.
        state = replace(self.state, unix_offset_s=self.context.unix_offset_s)
        self.state, effects = machine.step(state, input, self.context.clock.time())
        for effect in effects:
            self._do(effect)

    def on_message(self, device: DeviceId, message: Message) -> None:
        """A message from a member."""
        self.handle(From(device, message))

    def fall_silent(self) -> None:
        """Sends and records nothing more. ``ParticipantDriver`` ends the trainers."""
        self.state, self._over = replace(self.state, stage=co.Over()), True
        self._timers.cancel_all()

    # --- effects -------------------------------------------------------------------------------------------

    def _do(self, effect: co.Effect) -> None:
        match effect:
            case Send(device, message):
                if not self.context.send(device, message):
                    # Not at once: this step's effects come first.
                    lost = LinkLost(device, _GONE)
                    self.context.clock.call_later(0.0, partial(self.handle, lost))
            case co.OfferFiles(device, listing) if listing is not None:
                self._offer(device, ListingReader(self.state.request.manifest, listing))
            case co.OfferFiles(device):
                request = self.state.request
                self._offer(device, ManifestReader(self._source, request.manifest))
                if self._checkpoint is not None:
                    self._offer(device, ManifestReader(*self._checkpoint))
                if request.written is not None:
                    self._offer(device, ManifestReader(Path(request.written_at), request.written))
            case co.TakeOutputs(device, manifest):
                taking = self._take_outputs(device, manifest)
                self._taking = self.context.background.start("take a run's outputs", taking)
            case SetTimer(wait, seconds):
                self._timers.set(wait, seconds)
            case CancelTimer(wait):
                self._timers.cancel(wait)
            case co.Finish():
                self._over = True
                self._timers.cancel_all()
                if self._taking is not None:
                    self._taking.cancel()
                for withdraw in self._offers:
                    withdraw()
                self._on_over()
            case event:
                self._emit(event)

    def _offer(self, device: DeviceId, reader: ManifestReader | ListingReader) -> None:
        def failed(error: TandemError) -> None:
            self.handle(co.SendingFailed(device, error.problem))

        self._offers.append(self.context.transfers.offer(device, OfferedFiles(reader, failed)))

    async def _take_outputs(self, device: DeviceId, manifest: Manifest) -> None:
        try:
            if device == self.context.me:
                await self._copy_outputs(manifest)
            elif not manifest.files:
                self.handle(co.OutputsStored(()))
            else:
                receipt = await self.context.files.do(receive_outputs, manifest, self.folder)
                await self.context.transfers.fetch(device, receipt, lambda: self.handle(co.OutputsCame()))
                place = await self.context.files.do(receipt.finish)
                name = self.state.plan.member(device).name
                self.remark(f"What the script wrote on {name} is in {shown(str(place), 200)}.")
                self.handle(co.OutputsStored(tuple(file.path for file in manifest.files)))
        except Exception as error:
            self._outputs_failed(error)

    async def _copy_outputs(self, manifest: Manifest) -> None:
        """The script's files already lie beside it, so a missing copy in the history fails no run."""
        place, paths = self.folder / OUTPUTS, tuple(file.path for file in manifest.files)
        chief = self.state.chief
        plan = self.state.plan
        copied = chief is not plan.chief or is_walled(plan, chief) or plan.trial is not None
        work = working_copy_of(self.folder, chief) if copied else self._source
        try:
            if paths:
                place = await self.context.files.do(collect_outputs, manifest, work, self.folder)
                if copied:
                    self.remark(f"What the script wrote is in {shown(str(place), 200)}.")
        except (TandemError, OSError) as error:
            why = error.what if isinstance(error, TandemError) else f"{error.strerror or error}."
            self.remark(f"The history keeps no copy of what the script wrote beside itself: {why}")
            paths = ()
        models: tuple[str, ...] = ()
        saved = self.folder / run_folder.SAVED
        try:
            models = await self.context.files.do(outputs.move_models, saved, place)
        except OSError as error:
            where = shown(str(saved), 200)
            self.remark(f"The trained model is not among the outputs but in {where}: {error.strerror}.")
        self.handle(co.OutputsStored(paths + models))

    def remark(self, text: str) -> None:
        """Log it on this screen only: other users must not learn where this user's files are."""
        chief = self.state.chief
        lines = LogLines(task=chief.name, stream="tandem", text=text)
        if not self._over:
            self._emit(MemberLogged(run=self.state.plan.run, device=chief.device, lines=lines))

    def _outputs_failed(self, error: Exception) -> None:
        self.handle(
            co.OutputsFailed(
                problem_of(error, "outputs-unwritten", "they could not be stored.", "Free some disk space.")
            )
        )
