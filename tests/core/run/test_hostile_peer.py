"""Messages from a malicious paired device to a node: whole nodes, real files, links in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.cluster.make_plan import make_plan, new_run_id
from core.home.trust import set_policy
from core.project.send import ListingReader, ManifestReader
from core.run import problems
from core.run.context import RunLimits
from core.transfer.offer import OfferedFiles
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary.access import Access
from core.vocabulary.errors import Problem
from core.vocabulary.ids import RunId
from core.vocabulary.manifest import Listing, Manifest, listing_of
from core.vocabulary.plan import Plan, Role, RunSpec
from core.walls.levels import Level
from tests.core.project.making import manifest_for
from tests.core.run.lan import Lan, LanNode

HARMLESS = manifest_for({"train.py": b"print('hello')"})
EVIL_TEXT = b"import os; os.system('evil')"
EVIL = manifest_for({"train.py": EVIL_TEXT})
OVER = Problem(code="over", what="It is over.")


@pytest.fixture
async def lan(tmp_path: Path) -> AsyncIterator[Lan]:
    async with Lan(tmp_path, ("Ben", "Mallory")) as lan:
        lan.nodes["Ben"].ask_before_running(lan.nodes["Mallory"])
        yield lan


def plan_by(mallory: LanNode, ben: LanNode, manifest: Manifest, **changes: object) -> Plan:
    devices = (mallory.device, ben.device)
    plan = make_plan(
        RunSpec(script="train.py"),
        starter=mallory.device,
        project=manifest.digest,
        script="train.py",
        strategy="managed",
        roles={mallory.device: (Role.CHIEF,), ben.device: (Role.WORKER,)},
        names=dict.fromkeys(devices, "laptop"),
        hosts=dict.fromkeys(devices, "127.0.0.1"),
    )
    return replace(plan, **changes)


class Mallory:
    """Sends anything over its link to Ben, and records Ben's answers."""

    def __init__(self, lan: Lan, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lan, self.ben, self.node = lan, lan.nodes["Ben"], lan.nodes["Mallory"]
        self.heard: list[ms.Message] = []
        monkeypatch.setattr(self.node.runs, "on_message", lambda _, message: self.heard.append(message))

    def say(self, message: ms.Message) -> None:
        self.node.send(self.ben.device, message)

    def prepare(self, manifest: Manifest, **changes: object) -> Plan:
        plan = plan_by(self.node, self.ben, manifest, **changes)
        self.say(ms.Prepare(plan=plan, manifest=manifest))
        return plan

    async def ask_and_allow(self, manifest: Manifest, **changes: object) -> list[ev.ConsentAsked]:
        """The questions to Ben's user before the run was joined; then the run is abandoned."""
        self.ben.events.clear()
        self.heard.clear()
        plan = self.prepare(manifest, **changes)

        def joined() -> bool:
            return any(isinstance(each, ms.FilesWanted) for each in self.heard)

        await self.lan.wait_until(lambda: self.ben.state.consents or joined())
        if self.ben.state.consents:
            await self.ben.runs.answer_consent(plan.run, "once")
        await self.lan.wait_until(joined)
        self.say(ms.RunAbandoned(run=plan.run, problem=OVER))
        self.lan.clock.advance(1000.0)
        await self.lan.wait_until(lambda: not self.ben.runs.busy)
        return [event for event in self.ben.events if isinstance(event, ev.ConsentAsked)]

    def refusals(self) -> list[str]:
        return [heard.problem.code for heard in self.heard if isinstance(heard, ms.Declined)]


@pytest.fixture
def mallory(lan: Lan, monkeypatch: pytest.MonkeyPatch) -> Mallory:
    return Mallory(lan, monkeypatch)


async def test_a_runs_id_never_becomes_a_path(lan: Lan, mallory: Mallory, tmp_path: Path) -> None:
    ben = mallory.ben
    mine = tmp_path / "thesis" / "tasks" / "chapter.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("years of work")
    for number, run in enumerate((str(tmp_path / "thesis"), "../../thesis", "..", "", "a/b", "x" * 200), 1):
        plan = mallory.prepare(HARMLESS, run=RunId(run))
        mallory.say(ms.RunAbandoned(run=plan.run, problem=OVER))

        def is_refused(number: int = number) -> bool:
            return len(mallory.refusals()) == number

        await lan.wait_until(is_refused)
    await lan.wait_until(lambda: not ben.runs.busy)
    assert mallory.refusals() == ["broken-talk"] * 6
    assert mine.read_text() == "years of work"
    assert not ben.state.consents


async def test_a_no_given_while_the_starter_was_away_is_reported_when_it_is_back(
    lan: Lan, mallory: Mallory
) -> None:
    ben = mallory.ben
    plan = mallory.prepare(HARMLESS, exchange="tls")
    await lan.wait_until(lambda: ben.state.consents)
    lan.cut(mallory.node, ben)
    await ben.runs.answer_consent(plan.run, "no")
    await lan.wait_until(lambda: not ben.runs.busy)
    assert not mallory.refusals(), "nothing came over the cut link"
    lan.mend(mallory.node, ben)
    await lan.wait_until(lambda: mallory.refusals() == [problems.refused_by_user().code])
    assert not ben.state.consents and not ben.trainers


async def test_a_run_that_is_in_the_history_is_not_written_over(
    lan: Lan, mallory: Mallory, tmp_path: Path
) -> None:
    ben = mallory.ben
    kept = ben.home.runs / new_run_id()
    kept.mkdir()
    mallory.prepare(HARMLESS, run=RunId(kept.name))
    await lan.wait_until(lambda: mallory.refusals() == ["run-known"])
    assert not [event for event in ben.events if isinstance(event, ev.ConsentAsked)]


async def test_other_arguments_of_an_allowed_project_ask_again(lan: Lan, mallory: Mallory) -> None:
    for arguments, asks in (((), True), ((), False), (("--out", "/etc"), True), (("--out", "/etc"), False)):
        asked = await mallory.ask_and_allow(HARMLESS, arguments=arguments)
        assert [each.arguments for each in asked] == ([arguments] if asks else [])


async def test_an_allowed_project_that_would_reach_more_asks_again_and_one_that_reaches_less_does_not(
    lan: Lan, mallory: Mallory
) -> None:
    sealed = {"exchange": "sealed", "strategy": "own"}
    steps: list[tuple[dict[str, object], list[tuple[str, ...]]]] = [
        ({**sealed, "downloads": False}, [()]),
        ({**sealed, "downloads": False}, []),
        ({**sealed, "downloads": True}, [("network",)]),
        ({**sealed, "downloads": False}, []),
        ({"exchange": "tls", "strategy": "managed"}, [("strategy", "network")]),
        ({"exchange": "tls", "strategy": "managed"}, []),
    ]
    for changes, beyond in steps:
        asked = await mallory.ask_and_allow(HARMLESS, **changes)
        assert [each.beyond for each in asked] == beyond
        assert all(each.changed is bool(each.beyond) and not each.differs for each in asked)


async def test_within_walls_the_question_says_so_and_downloads_ask_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Lan(tmp_path, ("Ben", "Mallory"), level=Level(5, True)) as lan:
        lan.nodes["Ben"].ask_before_running(lan.nodes["Mallory"])
        mallory = Mallory(lan, monkeypatch)
        managed = {"exchange": "tls", "strategy": "managed"}
        (asked,) = await mallory.ask_and_allow(HARMLESS, **managed, downloads=False)
        assert (asked.walls, asked.network, asked.gaps) == ("default", "none", ("processes",))
        assert not await mallory.ask_and_allow(HARMLESS, **managed, downloads=False)
        (asked,) = await mallory.ask_and_allow(HARMLESS, **managed)
        assert (asked.network, asked.beyond) == ("downloads", ("network",))


async def test_folders_that_a_script_asks_to_open_are_asked_about_and_kept_as_part_of_the_yes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path.resolve() / "home"
    (home / "Pictures/2026").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    async with Lan(tmp_path, ("Ben", "Mallory"), level=Level(7, True)) as lan:
        ben, node = lan.nodes["Ben"], lan.nodes["Mallory"]
        ben.ask_before_running(node)
        mallory = Mallory(lan, monkeypatch)

        async def ask(*paths: str, write: bool = False) -> list[tuple[tuple[str, bool], ...]]:
            plan = plan_by(node, ben, HARMLESS)
            opens = tuple(Access(path=path, write=write) for path in paths)
            members = tuple(
                replace(each, opens=opens) if each.device == ben.device else each for each in plan.members
            )
            asked = await mallory.ask_and_allow(HARMLESS, members=members)
            assert all(each.beyond in ((), ("folders",)) for each in asked)
            return [tuple((each.path, each.write) for each in one.opened) for one in asked]

        pictures = str(home / "Pictures")
        assert await ask() == [()]
        assert await ask("~/Pictures") == [((pictures, False),)]
        for narrower in (("~/Pictures",), ("~/Pictures/2026",), ()):
            assert await ask(*narrower) == []
        assert await ask("~/Pictures", write=True) == [((pictures, True),)]
        assert await ask("~/Music", "~/Pictures") == [((str(home / "Music"), False), (pictures, False))]
        ben.trust.store = set_policy(ben.trust.store, node.device, "always", "default")
        assert await ask("~/Videos") == [((str(home / "Videos"), False),)], "always is said of the walls"


async def test_a_key_is_refused_to_a_script_before_anybody_is_asked(
    lan: Lan, mallory: Mallory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    plan = plan_by(mallory.node, mallory.ben, HARMLESS)
    opens = (Access(path="~/.ssh/id_ed25519"),)
    mallory.prepare(HARMLESS, members=tuple(replace(each, opens=opens) for each in plan.members))
    await lan.wait_until(lambda: mallory.refusals() == ["never-opened"])
    assert not [event for event in mallory.ben.events if isinstance(event, ev.ConsentAsked)]


async def test_a_folder_that_became_a_link_since_the_yes_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path.resolve() / "home"
    (home / "Pictures").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    async with Lan(tmp_path, ("Ben", "Mallory"), level=Level(7, True)) as lan:
        ben, node = lan.nodes["Ben"], lan.nodes["Mallory"]
        ben.ask_before_running(node)
        mallory = Mallory(lan, monkeypatch)
        members = tuple(
            replace(each, opens=(Access(path="~/Pictures"),)) for each in plan_by(node, ben, HARMLESS).members
        )
        plan = mallory.prepare(HARMLESS, members=members)
        await lan.wait_until(lambda: ben.state.consents)
        (home / "Pictures").rename(home / "elsewhere")
        (home / "Pictures").symlink_to(home / "secrets")
        await ben.runs.answer_consent(plan.run, "once")
        await lan.wait_until(lambda: any(isinstance(each, ms.FilesWanted) for each in mallory.heard))
        mallory.say(ms.FilesFrom(run=plan.run, giver=node.device))
        peer = ben.trust.store.peer(node.device)
        approved = peer.approved if peer is not None else ()
        assert [each.folders for each in approved] == [(str(home / "Pictures"),)], "what was read of"
        folder = tmp_path / "hers"
        folder.mkdir()
        (folder / "train.py").write_bytes(b"print('hello')")
        node.files.offer(ben.device, OfferedFiles(ManifestReader(folder, HARMLESS)))
        await lan.wait_until(lambda: mallory.refusals() == ["lies-elsewhere"])
        assert not ben.trainers


async def test_an_unsafe_project_is_refused_before_anybody_is_asked(lan: Lan, mallory: Mallory) -> None:
    mallory.prepare(manifest_for({"train.py": b"1", "../up.py": b"2"}))
    await lan.wait_until(lambda: mallory.refusals() == ["project-refused"])
    assert not [event for event in mallory.ben.events if isinstance(event, ev.ConsentAsked)]
    await lan.wait_until(lambda: not mallory.ben.runs.busy)


LONG = manifest_for({"train.py": b"1", **{f"{'x' * 200}{number}": b"2" for number in range(1_000)}})


async def ask_by_listing(
    lan: Lan, mallory: Mallory, comes: Manifest, listing: Listing | None = None, **changes: object
) -> str:
    """Ben's refusals when ``listing`` was announced and ``comes`` is offered under it."""
    ben, listing = mallory.ben, listing or listing_of(comes)
    assert listing is not None
    mallory.heard.clear()
    plan = plan_by(mallory.node, ben, comes, **{"project": listing.digest, **changes})
    mallory.node.files.offer(ben.device, OfferedFiles(ListingReader(comes, listing)))
    mallory.say(ms.Prepare(plan=plan, manifest=Manifest(script="train.py", files=()), listing=listing))
    await lan.wait_until(lambda: mallory.refusals() or ben.state.consents)
    assert not ben.state.consents
    await lan.wait_until(lambda: not ben.runs.busy)
    return mallory.refusals()[0]


async def test_a_list_of_files_that_comes_as_a_file_is_checked_like_any_other(
    lan: Lan, mallory: Mallory
) -> None:
    of_another_script = replace(LONG, script="x" * 200 + "7")
    unsafe = replace(LONG, files=(*LONG.files[:-1], replace(LONG.files[-1], path="../up.py")))
    listing = listing_of(LONG)
    assert listing is not None
    assert await ask_by_listing(lan, mallory, of_another_script) == "broken-talk"
    assert await ask_by_listing(lan, mallory, unsafe) == "project-refused"
    assert await ask_by_listing(lan, mallory, LONG, project=HARMLESS.digest) == "broken-talk"
    other = replace(LONG, files=(replace(LONG.files[0], sha256="a" * 64), *LONG.files[1:]))
    assert await ask_by_listing(lan, mallory, other, listing) == "transfer-broken"
    assert not [event for event in mallory.ben.events if isinstance(event, ev.ConsentAsked)]


async def test_a_project_that_the_disk_cannot_take_is_refused_before_anybody_is_asked(
    lan: Lan, mallory: Mallory
) -> None:
    huge = replace(LONG, files=(*LONG.files[:-1], replace(LONG.files[-1], size=1 << 50)))
    assert await ask_by_listing(lan, mallory, huge) == "disk-full"


async def test_a_list_of_files_that_never_comes_is_not_waited_for_once_the_run_is_over(
    lan: Lan, mallory: Mallory
) -> None:
    ben, listing = mallory.ben, listing_of(LONG)
    plan = plan_by(mallory.node, ben, LONG)
    mallory.say(ms.Prepare(plan=plan, manifest=Manifest(script="train.py", files=()), listing=listing))
    await lan.wait_until(lambda: ben.runs.busy)
    mallory.say(ms.RunAbandoned(run=plan.run, problem=OVER))
    await lan.wait_until(lambda: not ben.runs.busy)
    assert await mallory.ask_and_allow(HARMLESS), "and the next request is heard"


async def test_a_list_of_files_that_never_comes_is_waited_for_only_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Lan(tmp_path, ("Ben", "Mallory"), limits=RunLimits(listing_s=0.05)) as lan:
        mallory = Mallory(lan, monkeypatch)
        plan = plan_by(mallory.node, mallory.ben, LONG)
        said = Manifest(script="train.py", files=())
        mallory.say(ms.Prepare(plan=plan, manifest=said, listing=listing_of(LONG)))
        await lan.wait_until(lambda: mallory.refusals() == ["files-untold"])
        await lan.wait_until(lambda: not mallory.ben.runs.busy)


async def test_texts_that_are_not_the_projects_are_refused_before_anybody_is_asked(
    lan: Lan, mallory: Mallory
) -> None:
    """If they were shown, Ben would consent to something other than what runs."""
    for texts in ({"train.py": b"print('hello')"}, {"train.py": EVIL_TEXT, "other.py": b"1"}):
        mallory.heard.clear()
        plan = plan_by(mallory.node, mallory.ben, EVIL)
        mallory.say(ms.Prepare(plan=plan, manifest=EVIL, texts=texts))
        await lan.wait_until(lambda: mallory.refusals() == ["broken-talk"])
        await lan.wait_until(lambda: not mallory.ben.runs.busy)
    assert not [event for event in mallory.ben.events if isinstance(event, ev.ConsentAsked)]


async def test_a_laptop_that_asks_time_and_again_without_a_yes_has_to_pause(
    lan: Lan, mallory: Mallory
) -> None:
    ben = mallory.ben

    async def asks() -> bool:
        """Whether Ben's user is asked; the answer is no."""
        heard = len(mallory.refusals())
        plan = mallory.prepare(HARMLESS)
        await lan.wait_until(lambda: bool(ben.state.consents) or len(mallory.refusals()) > heard)
        if not ben.state.consents:
            assert mallory.refusals()[-1] == "asked-too-often"
            return False
        await ben.runs.answer_consent(plan.run, "no")
        await lan.wait_until(lambda: not ben.runs.busy and len(mallory.refusals()) > heard)
        return True

    for pause_s in (60.0, 120.0):
        assert [await asks() for _ in range(4)] == [True, True, True, False]
        lan.clock.advance(pause_s - 1.0)
        assert not await asks()
        lan.clock.advance(2.0)
