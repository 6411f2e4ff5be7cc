"""A run as an older Tandem recorded it: the fields of 22 November 2026."""

from __future__ import annotations

from pathlib import Path

from core.history.history import History
from core.history.read import read_run
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Finished

RUN = RunId("20261122-101500-9f3a01bc")
ANNA, BEN = "a" * 64, "b" * 64
DIGESTS = {"<ANNA>": ANNA, "<BEN>": BEN, "<WEIGHTS>": "c" * 64, "<PROJECT>": "d" * 64}
"""Left out of the texts below."""
SUMMARY = (
    '{"run":"20261122-101500-9f3a01bc","started_s":1795342500.5,"script":"train.py","devices":["Anna","Ben"],"device_ids":["<ANNA>","<BEN>"],'
    '"source":"/home/anna/digits/train.py","arguments":["--epochs","2"],"duration_s":61.5,'
    '"phase":{"type":"finished"},"spec":{"script":"/home/anna/digits/train.py","devices":["<BEN>"],'
    '"exchange":"tensorflow","wire":"auto","away_s":60.0,"ask_after_s":300.0,"shares":{"<BEN>":3},"shares_total":5},'
    '"summary":{"epochs":2,"steps":40,"first_step_s":9.5,"last_logs":{"loss":0.25},"outputs":["digits.keras"],'
    '"train_s":50.0,"total_s":61.5,"weights_sha256":{"worker:0":"<WEIGHTS>"}}}'
)
PLAN = (
    '{"run":"20261122-101500-9f3a01bc","project":"<PROJECT>","script":"train.py","starter":"<ANNA>","strategy":"managed","exchange":"tensorflow",'
    '"wire":"auto","seed":7,"generation":0,"balance":true,"members":[{"device":"<ANNA>","name":"Anna","share":32},'
    '{"device":"<BEN>","name":"Ben","share":32}],"tasks":[{"role":"chief","index":0,"device":"<ANNA>","host":"10.0.0.1",'
    '"port":20001,"certificate":"AP8="}]}'
)
METRICS = (
    '{"type":"member_ended_epoch","run":"20261122-101500-9f3a01bc","device":"<ANNA>","epoch":{"at_s":30.5,"epoch":1,"epochs":2,"fit":1,'
    '"logs":{"loss":0.5},"seconds":20.5,"step":20}}\n'
)


def test_its_outcome_plan_and_curves_are_read(tmp_path: Path) -> None:
    folder = tmp_path / RUN
    folder.mkdir()
    for name, text in (("summary.json", SUMMARY), ("plan.json", PLAN), ("metrics.jsonl", METRICS)):
        for short, digest in DIGESTS.items():
            text = text.replace(short, digest)
        (folder / name).write_text(text)
    history = History(tmp_path)
    history.open()
    (entry,) = history.newest(10)
    history.close()
    assert (entry.run, entry.phase, entry.summary.last_logs) == (RUN, Finished(), {"loss": 0.25})
    assert entry.spec is not None and entry.spec.shares == {BEN: 3}
    details = read_run(entry, folder)
    assert details.plan is not None and [each.name for each in details.plan.members] == ["Anna", "Ben"]
    assert [epoch.logs for epoch in details.epochs[details.plan.starter]] == [{"loss": 0.5}]
