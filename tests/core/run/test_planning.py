from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from core.project.only_here import CODE as ONLY_HERE
from core.run import planning
from core.run.planning import choose_devices, choose_hosts
from core.vocabulary.answers import ScriptRead
from core.vocabulary.data import MOST
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.manifest import ProjectFile, code_digest, manifest_of
from core.vocabulary.paths import shown
from core.vocabulary.plan import NodePin, Plan, Role, RunSpec
from core.vocabulary.settings import Settings
from core.vocabulary.state import Device, Me, State
from tests.core.cluster.laptops import ANNA, BEN, CLEO, NAMES, hardware
from tests.core.fake_node import VERSIONS
from tests.core.project.making import write
from tests.core.run.lan import project

OWN = "import tensorflow as tf\nstrategy = tf.distribute.experimental.ParameterServerStrategy(None)\n"
LOOP = "import tensorflow as tf\nwith tf.GradientTape() as tape:\n    pass\n"


def test_data_that_cannot_travel_is_reported(tmp_path: Path) -> None:
    write(tmp_path, {"project/train.py": "print(1)", "photos/1.jpg": "1", "photos/12:30.jpg": "2"})
    photos = {"photos": str(tmp_path / "photos")}
    spec = RunSpec(script=str(tmp_path / "project" / "train.py"), data=photos)
    warnings = planning.read_project(spec).warnings
    assert any("The data photos is sent without 12:30.jpg" in warning for warning in warnings)


def test_keras_downloads_beyond_a_runs_limit_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    names = [f"{number}.csv" for number in range(MOST)]
    calls = "".join(f"keras.utils.get_file('{name}', 'https://x.org/{name}')\n" for name in names)
    write(tmp_path / "home" / ".keras" / "datasets", dict.fromkeys(names, "1,2"))
    write(tmp_path, {"project/train.py": f"import keras\n{calls}", "photos/1.jpg": "1"})
    spec = RunSpec(script=str(tmp_path / "project" / "train.py"), data={"photos": str(tmp_path / "photos")})
    read = planning.read_project(spec)
    assert [each.data.name for each in read.data] == ["photos", *names[:-1]]
    (warning,) = (each for each in read.warnings if "csv" in each)
    assert warning.startswith(
        "~/.keras/datasets/7.csv is not sent: a run can have at most 8 data folders and files"
    )


def test_a_scripts_files_and_strategy_are_read(tmp_path: Path) -> None:
    read = planning.read_project(project(tmp_path / "somewhere" / "digits"))
    assert read.strategy == "managed"
    assert read.manifest.script == "train.py"
    assert len(read.manifest.files) == 2
    assert read.warnings == ()


def test_a_scripts_own_strategy_is_recognised_and_the_user_can_overrule_it(tmp_path: Path) -> None:
    spec = project(tmp_path / "somewhere" / "own", OWN)
    read = planning.read_project(spec)
    assert (read.strategy, read.parameter_server) == ("own", True)
    assert planning.read_project(RunSpec(script=spec.script, strategy="managed")).strategy == "managed"


FITS = "import tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy()\nmodel.fit(x)\n"
BY_HAND = "import tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy()\nstrategy.run(step)\n"


def test_fit_in_a_mirrored_strategy_is_managed_and_a_custom_loop_shares_equally(tmp_path: Path) -> None:
    fits, by_hand = (project(tmp_path / name, text) for name, text in (("fits", FITS), ("by_hand", BY_HAND)))
    read = planning.read_project(fits)
    assert (read.strategy, read.brings_strategy, read.mirrored_loop) == ("managed", True, False)
    shown_first = planning.read_script(Path(fits.script))
    assert isinstance(shown_first, ScriptRead)
    assert (shown_first.kind, shown_first.strategies) == ("managed", ("MirroredStrategy",))
    read = planning.read_project(by_hand)
    assert (read.strategy, read.mirrored_loop) == ("own", True)
    assert not any("shares" in warning for warning in read.warnings)
    unequal = RunSpec(script=by_hand.script, shares={ANNA: 48, BEN: 16})
    last = planning.read_project(unequal).warnings[-1]
    assert "equal parts of each batch: the requested shares" in last


def test_on_one_laptop_alone_a_script_keeps_the_strategy_that_it_opens(tmp_path: Path) -> None:
    spec = project(tmp_path / "fits", FITS)
    me = Me(
        device=ANNA,
        name="Anna's",
        addresses=(),
        versions=VERSIONS,
        hardware=hardware(),
        settings=Settings(),
        home="",
    )
    links: Any = SimpleNamespace(peer_host=str, own_host=str)

    def strategy_of(spec: RunSpec) -> str:
        read = planning.read_project(spec)
        return planning.make(spec, (ANNA,), read, ANNA, State(me=me), links).strategy

    assert strategy_of(spec) == "own"
    two_cards: dict[DeviceId, tuple[Role, ...]] = {ANNA: (Role.CHIEF, Role.WORKER)}
    assert strategy_of(RunSpec(script=spec.script, roles=two_cards)) == "managed", "two members"


def test_no_laptop_becomes_chief_by_claims_about_its_hardware(tmp_path: Path) -> None:
    spec = project(tmp_path / "somewhere" / "digits")
    claimed = Device(device=BEN, name="Ben's", paired=True, linked=True, hardware=hardware(1024, gpus=64))
    links: Any = SimpleNamespace(peer_host=lambda _: "192.168.1.11", own_host=lambda _: "192.168.1.10")
    read, state = planning.read_project(spec), State(devices={BEN: claimed})
    assert planning.make(spec, (ANNA, BEN), read, ANNA, state, links).chief.device == ANNA


def test_a_script_that_would_share_nothing_is_run_with_a_warning(tmp_path: Path) -> None:
    spec = project(tmp_path / "somewhere" / "loop", LOOP)
    (warning,) = planning.read_project(spec).warnings
    assert "share nothing" in warning
    assert planning.read_project(RunSpec(script=spec.script, solo=True)).warnings == ()
    read = planning.read_script(Path(spec.script))
    assert isinstance(read, ScriptRead)
    assert read.mistakes[0].code == "script-shares-nothing"


def test_a_file_that_only_this_laptop_has_is_named_before_the_start(tmp_path: Path) -> None:
    elsewhere = tmp_path / "data.csv"
    elsewhere.write_text("1")
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(f"import keras\nopen({str(elsewhere)!r})\nkeras.Model().fit()\n")
    (warning,) = planning.read_project(RunSpec(script=str(project / "train.py"))).warnings
    assert "train.py, line 2" in warning and shown(str(elsewhere)) in warning
    assert planning.read_project(RunSpec(script=str(project / "train.py"), solo=True)).warnings == ()
    read = planning.read_script(project / "train.py")
    assert isinstance(read, ScriptRead)
    assert [mistake.code for mistake in read.mistakes] == [ONLY_HERE]


def test_a_syntax_error_is_reported_in_a_sentence(tmp_path: Path) -> None:
    spec = project(tmp_path / "somewhere" / "broken", "def (:\n")
    with pytest.raises(TandemError) as caught:
        planning.read_project(spec)
    assert "line 1" in caught.value.what


def state(**ben: object) -> State:
    fields: dict[str, object] = {"paired": True, "linked": True, **ben}
    return State(
        devices={
            BEN: Device(device=BEN, name="Ben's", **fields),  # type: ignore[arg-type]
            CLEO: Device(device=CLEO, name="Cleo's", paired=True, linked=True),
        }
    )


def chosen(state: State, *devices: DeviceId, solo: bool = False) -> tuple[DeviceId, ...]:
    return choose_devices(RunSpec(script="x", devices=devices, solo=solo), ANNA, state)


def test_without_a_choice_every_available_device_takes_part() -> None:
    assert chosen(state()) == (ANNA, BEN, CLEO)
    assert chosen(state(busy=True)) == (ANNA, CLEO)
    assert chosen(state(), solo=True) == (ANNA,)


def test_a_run_meant_for_several_laptops_never_silently_becomes_a_run_alone() -> None:
    lonely = State(devices={BEN: Device(device=BEN, name="Ben's", paired=True)})
    with pytest.raises(TandemError) as caught:
        planning.check_company(RunSpec(script="x"), (ANNA,), lonely)
    assert caught.value.code == "would-be-alone"
    assert "Ben's is not connected" in caught.value.what and "--solo" in caught.value.fix
    assert "--role" not in caught.value.fix
    with pytest.raises(TandemError, match="give the others no --role"):
        planning.check_company(RunSpec(script="x", roles={BEN: (Role.CHIEF,)}), (ANNA,), lonely)
    planning.check_company(RunSpec(script="x", solo=True), (ANNA,), lonely)
    planning.check_company(RunSpec(script="x"), (ANNA,), State())  # nobody is paired: nobody was meant


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"linked": False}, "Ben's is not connected"),
        ({"busy": True}, "Ben's is busy with another run"),
        ({"problem": Problem(code="versions", what="Ben's has Keras 3.1.")}, "Ben's has Keras 3.1."),
    ],
    ids=["absent", "busy", "unlike"],
)
def test_absent_laptops_are_named_when_a_run_takes_everybody_present(
    fields: dict[str, object], words: str
) -> None:
    spec = RunSpec(script="x")
    (said,) = planning.who_is_missing(spec, chosen(state(**fields)), state(**fields))
    assert said.startswith(words)
    planning.check_company(spec, chosen(state(**fields)), state(**fields))
    assert planning.who_is_missing(RunSpec(script="x", devices=(CLEO,)), (ANNA, CLEO), state(**fields)) == ()


def test_chosen_devices_are_used_together_with_this_laptop() -> None:
    assert chosen(state(), CLEO) == (ANNA, CLEO)
    assert chosen(state(), CLEO, ANNA, CLEO) == (ANNA, CLEO)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"paired": False}, "device-not-paired"),
        ({"linked": False}, "device-offline"),
        ({"busy": True}, "device-busy"),
        ({"problem": Problem(code="versions-differ", what="Keras differs.")}, "versions-differ"),
    ],
)
def test_a_chosen_device_that_cannot_take_part_is_named(fields: dict[str, object], code: str) -> None:
    with pytest.raises(TandemError) as caught:
        chosen(state(**fields), BEN)
    assert caught.value.code == code


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(TandemError) as caught:
        chosen(State(), BEN)
    assert caught.value.code == "device-unknown"


def hosts(
    devices: tuple[DeviceId, ...], peers: dict[DeviceId, str], mine: dict[DeviceId, str]
) -> dict[DeviceId, str]:
    return choose_hosts(devices, ANNA, lambda d: peers.get(d, ""), lambda d: mine.get(d, ""), NAMES)


def test_each_device_has_the_address_of_its_link() -> None:
    assert hosts((BEN, ANNA), {BEN: "10.0.0.2"}, {BEN: "10.0.0.1"}) == {BEN: "10.0.0.2", ANNA: "10.0.0.1"}


def test_nodes_on_one_machine_meet_over_loopback() -> None:
    assert set(hosts((ANNA, BEN), {BEN: "127.0.0.1"}, {BEN: "127.0.0.1"}).values()) == {"127.0.0.1"}


def test_a_third_laptop_reaches_a_node_on_this_machine_by_the_machines_address() -> None:
    found = hosts(
        (ANNA, BEN, CLEO), {BEN: "127.0.0.1", CLEO: "10.0.0.3"}, {BEN: "127.0.0.1", CLEO: "10.0.0.1"}
    )
    assert found == {ANNA: "10.0.0.1", BEN: "10.0.0.1", CLEO: "10.0.0.3"}


def test_a_starter_that_takes_no_part_needs_no_address() -> None:
    assert set(hosts((BEN, CLEO), {BEN: "10.0.0.2", CLEO: "10.0.0.3"}, {BEN: "10.0.0.1"})) == {BEN, CLEO}


def test_a_device_whose_link_is_gone_is_named() -> None:
    with pytest.raises(TandemError, match="Ben's is not connected"):
        hosts((ANNA, BEN), {}, {})


def test_one_device_needs_no_address() -> None:
    assert hosts((ANNA,), {}, {}) == {}


def test_differences_that_were_accepted_for_this_code_are_accepted_again(tmp_path: Path) -> None:
    spec = replace(project(tmp_path / "somewhere" / "digits"), solo=True)
    read = planning.read_project(spec)
    links = SimpleNamespace(peer_host=str, own_host=str)

    def planned(spec: RunSpec, *accepted: str) -> Plan:
        me = Me(
            device=ANNA,
            name="Anna's",
            addresses=(),
            versions=VERSIONS,
            hardware=hardware(),
            settings=Settings(accepted=accepted),
            home="",
        )
        return planning.make(spec, (ANNA,), read, ANNA, State(me=me), links)

    with pytest.raises(TandemError, match="too many or too long") as failure:
        planned(replace(spec, arguments=("x" * 40_000,)))
    assert failure.value.code == "plan-too-large"

    code = planned(spec).code
    assert len(code) == 64 and not planned(spec).accept_differences
    assert planned(spec, "another", code).accept_differences
    assert planned(replace(spec, accept_differences=True)).accept_differences
    looked = planning.read_script(Path(spec.script))
    assert isinstance(looked, ScriptRead) and looked.code == code, "what a screen withdraws by"


def test_only_a_change_of_python_changes_the_code() -> None:
    def code(**contents: str) -> str:
        files = [ProjectFile(path=n.replace("_", "."), size=1, sha256=s) for n, s in contents.items()]
        return code_digest(manifest_of("train.py", files))

    assert code(train_py="1", best_keras="1") == code(train_py="1", best_keras="2", log_csv="3")
    assert len({code(train_py="1"), code(train_py="2"), code(train_py="1", data_py="1")}) == 3


def test_a_plan_pins_the_nodes_of_members_that_may_have_to_go_on_without_the_starter(tmp_path: Path) -> None:
    spec, them = project(tmp_path / "somewhere" / "digits"), (ANNA, BEN, CLEO)
    pins = {device: NodePin(certificate=device.encode(), port=27600) for device in (BEN, CLEO)}
    links: Any = SimpleNamespace(
        peer_host=lambda _: "192.168.1.11", own_host=lambda _: "192.168.1.10", node_pin=pins.get
    )
    devices = {
        device: Device(device=device, name=NAMES[device], paired=True, linked=True) for device in them[1:]
    }
    read, state = planning.read_project(spec), State(devices=devices)

    def pinned(read: planning.LocalProject, *them: DeviceId) -> list[NodePin | None]:
        plan = planning.make(spec, them, read, ANNA, state, links)
        return [member.node for member in plan.members]

    assert pinned(read, *them) == [None, pins[BEN], pins[CLEO]]
    assert pinned(read, ANNA, BEN) == [None, None], "who is left is alone"
    loop = replace(read, strategy="own", mirrored_loop=True)
    assert pinned(loop, *them) == [None] * 3, "it ends with its starter"
