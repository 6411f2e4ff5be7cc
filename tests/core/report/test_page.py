from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from html.parser import HTMLParser
from typing import Any

import pytest
from msgspec.structs import replace

from core.report.page import MOST_EPOCHS, MOST_FILES, TEMPLATE, outcome, page
from core.vocabulary.answers import RunDetails
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.laptops import LaptopUsed, Machine, MembershipChanged
from core.vocabulary.phases import Exit, Failed, Finished, Phase, Stopped
from core.vocabulary.plan import with_ports, without_ports
from core.vocabulary.progress import Audits, Best, Diverged, EpochEnd, Expectation, Progress, Settled, Summary
from core.vocabulary.readings import Hardware
from core.vocabulary.versions import Versions
from tests.core.cluster.laptops import ANNA, BEN, NAMES, plan_of
from tests.core.run.told import epochs_of, run_told, steps_of

FINISHED = Exit(reason="finished")
PORTS = {ANNA: {"chief:0": 20001}, BEN: {"worker:0": 20002}}
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&lt;\x1b[31m\u202e"


class Page(HTMLParser):
    """A browser's view: tags, their attributes, and the words."""

    VOID = ("meta", "img", "br", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def shown(details: RunDetails, **more: Any) -> Page:
    exits = more.pop("exits", [(ANNA, "chief:0", FINISHED), (BEN, "worker:0", FINISHED)])
    return Page(page(details, exits, more.pop("here", ()), more.pop("said", ())))


SUMMARY = Summary(
    strategy="MultiWorkerMirroredStrategy",
    first_step_s=7.2,
    train_s=61.0,
    total_s=75.0,
    epochs=4,
    steps=40,
    steps_s=99.25,
    samples_s=4321.0,
    last_logs={"val_loss": 0.55, "accuracy": 0.65, "loss": 0.5},
    weights_sha256={ANNA: "ab" * 32, BEN: "ab" * 32},
    outputs=("digits.keras", "logs/a b#1.txt"),
)


def test_the_page_describes_the_run_and_its_result() -> None:
    steps = steps_of(40, samples_s=4321.0, step_s=0.01, wait_s=0.002)
    text = shown(run_told(summary=SUMMARY, steps={ANNA: steps, BEN: steps})).text
    for words in (
        "train.py finished · 2 laptops",
        "1:15",
        "Laptops laptop share samples/s",
        "Anna's aaaaaaaa 1 of 2 4,321 10.0 ms 2.0 ms abababababababab finished",
        "Ben's bbbbbbbb 1 of 2",
        "loss 0.5 val_loss 0.55 accuracy 0.65",
        "first step after 7.2 s training 1:01 total 1:15",
        "steps/s 99.25",
        "4/4 0.5 0.55 0.65 1.5 s",
        "script /home/anna/train.py arguments --epochs 4 strategy MultiWorkerMirroredStrategy",
        "started on Anna's seed 1 numbers on the wire f32",
        f"weights on Ben's {'ab' * 32}",
    ):
        assert words in text, (words, text)


EXPECTED = Expectation(alone_s=(0.1, 0.3), step_s=0.08, wire_s=0.02, wire_bytes=1_200_000, shares=(48, 16))


def test_the_page_compares_the_expected_and_the_measured_speed() -> None:
    settled = Settled(
        step_s=0.3, samples_s=213.0, wire_s=0.2, wire_bytes=9_000_000, shares={ANNA: 47, BEN: 17}
    )
    text = shown(run_told(summary=replace(SUMMARY, expectation=EXPECTED, settled=settled))).text
    assert "47 of 64 rows" in text and "17 of 64 rows" in text
    out = "measured 0.3× the speed of Anna's alone (each step 3.8× as long as expected)"
    assert f"Speed Expected 1.2×, {out}" in text
    short = shown(run_told(summary=replace(SUMMARY, expectation=EXPECTED))).text
    assert "Speed Two laptops: about 1.2× as fast as Anna's alone" in short
    assert " Speed " not in shown(run_told(summary=SUMMARY)).text


def test_the_page_says_how_the_run_was_not_exact() -> None:
    text = shown(run_told(summary=replace(SUMMARY, met_every=32, sent_bits=8))).text
    assert "Met every 32 steps, gradients sent in 8 bits: not the result of one machine" in text
    assert "not the result of one machine" not in shown(run_told(summary=SUMMARY)).text


def test_the_page_says_how_many_steps_were_audited_also_of_a_run_that_failed() -> None:
    audited = replace(SUMMARY, audits=Audits(steps=1940, audited=21))
    for phase in (Finished(), Failed(problem=Problem(code="script-error", what="It failed."))):
        text = shown(run_told(phase=phase, summary=audited)).text
        assert "21 of 1,940 shared steps were compared with one laptop's" in text
    assert "shared steps" not in shown(run_told(summary=SUMMARY)).text


def test_the_four_numbers_of_a_run_come_first() -> None:
    settled = Settled(step_s=0.05)
    summary = replace(SUMMARY, expectation=EXPECTED, settled=settled)
    best = {"val_loss": Best(value=0.4, epoch=1)}
    details = run_told(summary=summary)
    told = shown(replace(details, entry=replace(details.entry, best=best)))
    assert "loss, last epoch 0.5 validation 0.55, best 0.4 in epoch 2 accuracy, last epoch 0.65" in told.text
    assert "time 1:15 40 steps in 4 epochs speed 2.0× as fast as the fastest laptop alone" in told.text
    alone = replace(SUMMARY, last_logs={"loss": 0.5})
    words = "loss, last epoch 0.5 time 1:15 40 steps in 4 epochs speed 4,321 samples/s"
    assert words in shown(run_told(summary=alone)).text
    slower = replace(summary, settled=Settled(step_s=0.2))
    assert "speed 2.0× slower than the fastest laptop alone" in shown(run_told(summary=slower)).text
    tiny = replace(slower, expectation=replace(EXPECTED, alone_s=(0.01, 0.01), wire_bytes=100_000))
    assert "speed 4,321 samples/s" in shown(run_told(summary=tiny)).text
    as_in_the_window = replace(alone, settled=Settled(step_s=0.05, samples_s=5000.0))
    assert "speed 5,000 samples/s" in shown(run_told(summary=as_in_the_window)).text
    assert "figures" not in [each.get("id") for each in shown(run_told()).all("div")]


def test_the_page_needs_nothing_else() -> None:
    found = shown(run_told(summary=SUMMARY), here={"digits.keras"})
    assert found.all("img") == found.all("link") == []
    assert found.all("script") == [{"type": "application/json", "id": "curves"}, {}]
    text = page(run_told(summary=SUMMARY), [], ())
    ((run,),) = [re.findall("<script>(.*?)</script>", text, re.DOTALL)]
    digest = base64.b64encode(hashlib.sha256(run.encode()).digest()).decode()
    policy = next(meta["content"] for meta in found.all("meta") if "http-equiv" in meta)
    assert policy == (f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'")
    assert not re.search("https?://", text)


def test_a_metric_of_any_name_is_data_on_the_page_and_nothing_else() -> None:
    steps = {ANNA: [replace(step, logs={EVIL: 1.0}) for step in steps_of(3)]}
    text = page(replace(run_told(summary=SUMMARY), steps=steps, epochs={}), [], ())
    (told,) = re.findall('<script type="application/json" id="curves">(.*?)</script>', text, re.DOTALL)
    assert "<" not in told and ">" not in told and "&" not in told
    (panel,) = [panel for panel in json.loads(told) if "alert" in panel["title"]]
    assert panel["title"].startswith("<script>alert(1)</script>")
    assert panel["curves"][0]["y"] == [1.0] * 3
    assert "<script>alert" not in text


def test_a_failed_run_says_why_how_to_fix_it_and_how_each_trainer_ended() -> None:
    problem = Problem(code="lost", what="Ben's laptop went away.", fix="Plug it in.")
    exits = [
        (ANNA, "chief:0", FINISHED),
        (ANNA, "ps:0", Exit(reason="stopped")),
        (BEN, "worker:0", Exit(reason="out-of-memory", problem=Problem(code="m", what="Full.", fix="Less."))),
    ]
    text = shown(run_told(phase=Failed(problem=problem)), exits=exits).text
    assert "failed · 2 laptops" in text
    assert "Ben's laptop went away. Plug it in." in text
    assert "out of memory: Full. Less." in text


def test_a_run_that_reported_nothing_says_so() -> None:
    found = shown(run_told(plan=None, steps={}, epochs={}), exits=[])
    assert "Smoothing" not in found.text
    assert "The script reported no numbers." in found.text


def test_the_start_time_comes_from_the_runs_id_on_every_laptop() -> None:
    """As in the list of runs: the other laptop's record is a little later, and by another clock."""
    details = run_told()
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(1795288324))
    assert details.entry.run == "20261121-191204-9f3a01bc"
    for recorded_s in (0.0, 1_795_288_390.0):
        told = replace(details, entry=replace(details.entry, started_s=recorded_s))
        assert f"· {began} ·" in shown(told).text


def test_one_laptop_alone_has_no_share() -> None:
    alone = shown(run_told(plan=plan_of((ANNA,))), exits=[])
    assert "one laptop" in alone.text and "Laptops laptop samples/s" in alone.text
    assert " of 1 " not in alone.text


def test_roles_are_named_only_where_the_script_has_them() -> None:
    managed = shown(run_told(plan=with_ports(plan_of(), PORTS)))
    assert "chief:0" not in managed.text and "worker:0" not in managed.text
    own = shown(run_told(plan=with_ports(plan_of(strategy="own"), PORTS)))
    for words in (
        "Laptops laptop tasks share",
        "Anna's aaaaaaaa chief:0 1 of 2",
        "Ben's bbbbbbbb worker:0 1 of 2",
        'TF_CONFIG chief:0 on Anna\'s {"cluster"',
    ):
        assert words in own.text, (words, own.text)


def test_nothing_foreign_becomes_markup() -> None:
    evil = EpochEnd(at_s=0.0, epoch=0, epochs=1, step=0, logs={EVIL: 1.0}, seconds=1.0)
    step = Progress(at_s=0.0, epoch=0, epochs=1, step=0, batch=0, logs={EVIL: 1.0})
    plan = plan_of(strategy="own")
    details = run_told(
        plan=plan,
        script=EVIL,
        phase=Failed(problem=Problem(code="x", what=EVIL, fix=EVIL)),
        summary=Summary(
            strategy=EVIL,
            last_logs={EVIL: 1.0},
            weights_sha256={ANNA: EVIL},
            outputs=(EVIL, f"a/{EVIL}"),
        ),
        steps={ANNA: (step,), DeviceId(EVIL): (step,)},
        epochs={ANNA: (evil,), DeviceId(EVIL): (evil,)},
        machines={
            ANNA: Machine(
                versions=Versions(
                    tandem=EVIL, protocol=1, python=EVIL, tensorflow=EVIL, keras=EVIL, platform=EVIL
                ),
                hardware=Hardware(cpu=EVIL, cores=1, memory_bytes=1, gpus=(EVIL,)),
            )
        },
        membership=(MembershipChanged(device=DeviceId(EVIL), change="left", at_s=1e300, words=EVIL),),
    )
    best = {EVIL: Best(value=1.0, epoch=0)}
    details = replace(details, entry=replace(details.entry, name=EVIL, note=EVIL, best=best))
    ended = Exit(reason="script-error", problem=Problem(code="x", what=EVIL, fix=EVIL))
    honest = shown(run_told(), here=())
    found = shown(
        details, exits=[(ANNA, EVIL, ended), (DeviceId(EVIL), EVIL, ended)], here={EVIL}, said=[EVIL]
    )
    assert {tag for tag, _ in found.tags} <= {tag for tag, _ in honest.tags} | {"a", "div"}
    assert found.all("img") == []
    assert not any(name.startswith("on") for _, attributes in found.tags for name in attributes)
    assert "<script>alert(1)</script>" in found.text, "shown, not run"
    assert "\x1b" not in found.text
    assert "\u202e" not in found.text


MACHINE = Machine(
    versions=Versions(
        tandem="0.1.0",
        protocol=1,
        python="3.11",
        tensorflow="2.21.0",
        keras="3.12.0",
        platform="Linux x86_64",
    ),
    hardware=Hardware(cpu="Ryzen 7", cores=16, memory_bytes=32 << 30, gpus=("NVIDIA RTX 4060",)),
)


def test_the_page_shows_hardware_attendance_and_tf_config() -> None:
    details = run_told(
        plan=with_ports(plan_of(), PORTS),
        machines={ANNA: MACHINE},
        uses={
            device: tuple(
                LaptopUsed(device=device, second=n, cpu_pct=10 * n, gpu_pct=gpu) for n in (1.0, 2.0)
            )
            for device, gpu in ((ANNA, 84.0), (BEN, None))
        },
        membership=(
            MembershipChanged(device=ANNA, change="joined", at_s=1_790_000_008.0),
            MembershipChanged(device=BEN, change="away", at_s=1_790_000_075.0, second=60.0),
            MembershipChanged(
                device=BEN, change="lost", at_s=1_790_003_700.0, second=99.0, words="It was killed."
            ),
        ),
    )
    best = {"val_loss": Best(value=0.55, epoch=2)}
    details = replace(
        details, entry=replace(details.entry, best=best, name="Warm start", note="half the rate")
    )
    said = ["wombat is a metric of the batch as a whole (train.py, line 12)."]
    found = shown(details, said=said)
    for words in (
        "Warm start: finished Warm start finished · 2 laptops",
        "1:15 half the rate",
        "Smoothing Drag to zoom",
        "Anna's Ryzen 7, 16 cores, 34.4 GB NVIDIA RTX 4060 Linux x86_64 "
        "Tandem 0.1.0, Python 3.11, TensorFlow 2.21.0, Keras 3.12.0 GPU 84 %, CPU 15 %",
        "Ben's CPU 15 %",
        "0:08 Anna's began to train",
        "1:15 Ben's was away: it did not answer",
        "1:01:40 Ben's was lost: It was killed.",
        f"Messages from Tandem {said[0]}",
        "Best epochs val_loss 0.55 in epoch 3",
        'TF_CONFIG Anna\'s {"cluster": {"chief": ["192.168.1.10:20001"], "worker"',
    ):
        assert words in found.text, (words, found.text)
    assert "TF_CONFIG" not in shown(run_told(plan=without_ports(plan_of()))).text, "no ports yet"


def test_a_record_of_an_earlier_tandem_has_none_of_these_tables() -> None:
    text = shown(run_told()).text
    for title in ("Machines", "Who took part", "Messages from Tandem", "Best epochs"):
        assert title not in text


def test_the_template_escapes_everything() -> None:
    text = TEMPLATE.read_text(encoding="utf-8")
    assert not re.search(r"\|\s*safe\b|\bautoescape\b|\b(?:include|import|extends)\b", text)
    assert not re.search(r"<link|url\(|//", text)
    whole = re.findall(r"{{ ([\w.]+) \| whole }}", text)
    assert whole == ["script.policy", "script.style", "curves", "script.text"], "our own files, and JSON"
    assert text.count("<script") == 2


def test_outputs_that_are_here_can_be_opened_and_others_are_named() -> None:
    found = shown(run_told(summary=SUMMARY), here={"logs/a b#1.txt"})
    assert [attributes["href"] for attributes in found.all("a")] == ["outputs/logs/a%20b%231.txt"]
    assert "digits.keras" in found.text


def test_very_many_epochs_and_files_are_cut_and_the_page_says_so() -> None:
    outputs = tuple(f"file{number}" for number in range(MOST_FILES + 5))
    details = run_told(summary=Summary(outputs=outputs), epochs={ANNA: epochs_of(MOST_EPOCHS + 7)})
    text = shown(details).text
    assert f"The last {MOST_EPOCHS} of {MOST_EPOCHS + 7}" in text
    assert "and 5 more" in text
    assert f"file{MOST_FILES}" not in text


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        (Finished(), "finished"),
        (Stopped(by=NAMES[BEN]), "stopped on Ben's"),
        (Stopped(), "stopped"),
        (Failed(problem=Problem(code="x", what="x")), "failed"),
    ],
)
def test_the_title_says_how_the_run_ended(phase: Phase, words: str) -> None:
    assert outcome(phase) == words


def test_a_run_whose_loss_became_nan_is_not_simply_finished() -> None:
    lost = Diverged(value="NaN", epoch=30, step=900)
    summary = replace(SUMMARY, diverged=lost, last_logs={"accuracy": 0.1})
    finished = "finished, but the loss became NaN in epoch 31"
    found = shown(run_told(summary=summary))
    assert f"train.py: {finished} train.py {finished} · 2 laptops" in found.text
    assert "loss NaN since epoch 31 accuracy, last epoch 0.1" in found.text
    assert found.all("b")[0] == {"class": "flaw"}, "amber, as in the window"
    epoch = EpochEnd(
        at_s=0.0, epoch=0, epochs=1, step=0, logs={"mae": 0.5}, seconds=1.0, not_finite={"loss": "NaN"}
    )
    assert "1/1 NaN 0.5 1.0 s" in shown(run_told(epochs={ANNA: (epoch,)})).text
    stopped = shown(run_told(summary=summary, phase=Stopped())).text
    assert "stopped · Loss became NaN in epoch 31 · 2 laptops" in stopped
    differs = replace(SUMMARY, told=("Dropout is drawn on each laptop.",))
    assert "finished, but not with the result of one machine ·" in shown(run_told(summary=differs)).text
    assert "flaw" not in [each.get("class") for each in shown(run_told(summary=SUMMARY)).all("b")]
