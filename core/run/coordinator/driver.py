"""Drives the coordinator's machine: messages and files to members, outputs in. On the core loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from core.project.outputs import collect_outputs, receive_outputs
from core.run import outputs
from core.run.context import RunContext
from core.run.coordinator import machine
from core.run.coordinator import state as co
from core.run.draft import Send, Shown
from core.run.transfer import IncomingFiles, problem_of, send_pieces
from core.runtime.timers import CancelTimer, SetTimer, TimerFired, Timers
from core.vocabulary import peer_messages as ms
from core.vocabulary import run_folder
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import MemberLogged
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.manifest import Manifest
from core.vocabulary.paths import shown
from core.vocabulary.peer_messages import From, Message
from core.vocabulary.plan import Plan
from core.vocabulary.progress import LogLines
from core.vocabulary.run_folder import OUTPUTS

_GONE = Problem(code="link-gone", what="its link is gone.")


class CoordinatorDriver:
    """One run that this node started. ``on_over`` is called once, at its end."""

    def __init__(
        self,
        context: RunContext,
        plan: Plan,
        manifest: Manifest,
        source: Path,
        pressed_s: float,
        checkpoint: tuple[Path, Manifest] | None = None,
        texts: Mapping[str, bytes] = MappingProxyType({}),
        *,
        emit: Callable[[Shown], None],
        on_over: Callable[[], None],
    ) -> None:
        self.context = context
        folder, files = checkpoint or (None, None)
        self.state = co.coordinate(context.me, plan, manifest, str(source), pressed_s, files, texts)
        self._source = source
        self._checkpoint = folder
        self._emit = emit
        self._on_over = on_over
        self._over = False
        self._timers = Timers[Wait](context.clock, lambda wait: self.handle(TimerFired(wait)))
        self._incoming: IncomingFiles | None = None
        self._outputs_from: DeviceId | None = None
        self._storing = False
        self._sendings = Counter[DeviceId]()
        """How often files were asked for, or the link was lost: each ends the sending before."""

    @property
    def folder(self) -> Path:
        return self.context.folder(self.state.plan.run)

    def begin(self) -> None:
        self.handle(co.Begun())

    def handle(self, input: co.Input) -> None:
        if isinstance(input, co.MemberLost):
            self._sendings[input.device] += 1
        # The run's clock may have stood still while this laptop slept.
        state = replace(self.state, unix_s=self.context.unix_s)
        self.state, effects = machine.step(state, input, self.context.clock.time())
        for effect in effects:
            self._do(effect)

    def on_message(self, device: DeviceId, message: Message) -> None:
        """A message from a member."""
        if isinstance(message, ms.Chunk):
            self._on_chunk(device, message)
        else:
            self.handle(From(device, message))

    # --- effects -------------------------------------------------------------------------------------------

    def _do(self, effect: co.Effect) -> None:
        match effect:
            case Send(device, message):
                if not self.context.links.send(device, message):
                    # Not at once: this step's effects come first.
                    self.context.clock.call_later(0.0, partial(self._on_unsent, device))
            case co.SendFiles(device, files):
                self._sendings[device] += 1
                self.context.background.start("send a project", self._send_files(device, files))
            case co.TakeOutputs(device, manifest):
                self.context.background.start("take a run's outputs", self._take_outputs(device, manifest))
            case SetTimer(wait, seconds):
                self._timers.set(wait, seconds)
            case CancelTimer(wait):
                self._timers.cancel(wait)
            case co.Finish():
                self._over = True
                self._timers.cancel_all()
                if self._incoming is not None:
                    self._incoming.end()
                self._on_over()
            case event:
                self._emit(event)

    def _on_unsent(self, device: DeviceId) -> None:
        if not self.context.links.peer_host(device):  # else there is a new link by now
            self.handle(co.MemberLost(device, _GONE))

    async def _send_files(self, device: DeviceId, files: tuple[int, ...]) -> None:
        manifest, checkpoint = self.state.manifest, self.state.checkpoint
        project = tuple(number for number in files if number < len(manifest.files))
        rest = tuple(number - len(manifest.files) for number in files if number >= len(manifest.files))
        sending = self._sendings[device]
        try:
            await self._send(device, self._source, manifest, project, sending)
            if checkpoint is not None and self._checkpoint is not None and rest:
                await self._send(device, self._checkpoint, checkpoint, rest, sending)
        except TandemError as error:
            self.handle(co.SendingFailed(device, error.problem))

    async def _send(
        self, device: DeviceId, folder: Path, manifest: Manifest, files: tuple[int, ...], sending: int
    ) -> None:
        await send_pieces(
            self.context,
            device,
            self.state.plan.run,
            manifest.digest,
            folder,
            manifest,
            files,
            lambda: isinstance(self.state.stage, co.Assembling) and self._sendings[device] == sending,
        )

    async def _take_outputs(self, device: DeviceId, manifest: Manifest) -> None:
        if self._storing:
            return  # all of them came before the link was lost
        if self._incoming is not None:
            self._incoming.end()
        try:
            if device == self.context.me:
                await self._copy_outputs(manifest)
            elif not manifest.files:
                self.handle(co.OutputsStored(()))
            else:
                self._outputs_from = device
                self._incoming = IncomingFiles(
                    self.context,
                    manifest.digest,
                    manifest.total_bytes,
                    on_piece=lambda received: self.handle(co.OutputsCame()),
                    on_complete=lambda: self.context.background.start(
                        "store a run's outputs", self._store_outputs(device, manifest)
                    ),
                    on_trouble=self._outputs_failed,
                )
                await self.context.files.do(self._receive_outputs, manifest)
                assert self._incoming.receipt is not None
                if not self._incoming.receipt.wanted:  # empty files only
                    await self._store_outputs(device, manifest)
        except Exception as error:
            self._outputs_failed(error)

    async def _copy_outputs(self, manifest: Manifest) -> None:
        """What the script wrote lies beside it already: a missing copy in the history fails no run."""
        place, paths = self.folder / OUTPUTS, tuple(file.path for file in manifest.files)
        try:
            if paths:
                place = await self.context.files.do(collect_outputs, manifest, self._source, self.folder)
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

    def _receive_outputs(self, manifest: Manifest) -> None:
        """On the files' thread, before any piece is written there."""
        assert self._incoming is not None
        self._incoming.receipt = receive_outputs(manifest, self.folder)

    def _on_chunk(self, device: DeviceId, chunk: ms.Chunk) -> None:
        incoming = self._incoming
        if incoming is None or device != self._outputs_from or chunk.project != incoming.project:
            return
        if not incoming.take(chunk) and not self._over:
            self._outputs_failed(RuntimeError("more pieces than were announced"))

    async def _store_outputs(self, device: DeviceId, manifest: Manifest) -> None:
        assert self._incoming is not None and self._incoming.receipt is not None
        self._storing = True
        try:
            place = await self.context.files.do(self._incoming.receipt.finish)
        except Exception as error:
            self._outputs_failed(error)
            return
        name = self.state.plan.member(device).name
        self.remark(f"What the script wrote on {name} is in {shown(str(place), 200)}.")
        self.handle(co.OutputsStored(tuple(file.path for file in manifest.files)))

    def remark(self, text: str) -> None:
        """For this screen alone: where the user's files are is nobody else's business."""
        chief = self.state.plan.chief
        lines = LogLines(task=chief.name, stream="tandem", text=text)
        if not self._over:
            self._emit(MemberLogged(run=self.state.plan.run, device=chief.device, lines=lines))

    def _outputs_failed(self, error: Exception) -> None:
        self.handle(
            co.OutputsFailed(
                problem_of(error, "outputs-unwritten", "they could not be stored.", "Free some disk space.")
            )
        )
