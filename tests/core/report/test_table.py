from __future__ import annotations

import csv
import json

from core.report.table import history_csv, history_json
from core.speed.sentences import epoch_words
from core.vocabulary.progress import EpochEnd, NotFinite
from tests.core.cluster.laptops import ANNA, BEN
from tests.core.run.told import epochs_of, run_told


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_the_table_has_a_row_an_epoch_and_member_and_counts_from_one() -> None:
    found = rows(history_csv(run_told()))
    assert len(found) == 8
    assert found[0] == {
        "member": "Anna's",
        "fit": "1",
        "epoch": "1",
        "steps": "10",
        "seconds": "1.5",
        "epoch_steps": "",
        "epoch_steps_planned": "",
        "loss": "2.0",
        "val_loss": "2.2",
        "accuracy": "0.5",
    }
    assert [row["member"] for row in found] == ["Anna's"] * 4 + ["Ben's"] * 4


def test_a_metric_that_only_some_epochs_have_leaves_empty_cells() -> None:
    epochs = (*epochs_of(1, validation=False), *epochs_of(1, fit=1))
    found = rows(history_csv(run_told(epochs={ANNA: epochs})))
    assert [row["val_loss"] for row in found] == ["", "2.2"]


def test_a_value_that_is_no_finite_number_is_written_as_programs_read_it() -> None:
    lost: NotFinite = {"loss": "NaN", "mae": "infinite"}
    epoch = EpochEnd(at_s=0.0, epoch=0, epochs=1, step=0, seconds=1.0, not_finite=lost)
    (found,) = rows(history_csv(run_told(epochs={ANNA: (epoch,)})))
    assert (found["loss"], found["mae"]) == ("nan", "inf")


def test_a_name_that_a_spreadsheet_would_calculate_is_shown_as_text() -> None:
    name = '=HYPERLINK("http://evil","loss")'
    epoch = EpochEnd(at_s=0.0, epoch=0, epochs=1, step=0, logs={name: 1.0}, seconds=1.0)
    head = next(csv.reader(history_csv(run_told(epochs={ANNA: (epoch,)})).splitlines()))
    assert head[-1] == "'" + name


def test_the_json_has_each_members_epochs_as_they_were_reported() -> None:
    found = json.loads(history_json(run_told()))
    assert found["run"] == run_told().entry.run
    assert [(member["device"], member["name"]) for member in found["members"]] == [
        (ANNA, "Anna's"),
        (BEN, "Ben's"),
    ]
    assert found["members"][0]["epochs"][3]["logs"] == {"loss": 0.5, "accuracy": 0.65, "val_loss": 0.55}


def test_a_run_without_epochs_leaves_a_table_with_its_head() -> None:
    details = run_told(epochs={})
    assert history_csv(details) == "member,fit,epoch,steps,seconds,epoch_steps,epoch_steps_planned\r\n"
    assert json.loads(history_json(details))["members"] == []


def test_an_epoch_that_was_broken_off_says_how_many_of_its_steps_were_done() -> None:
    epoch = EpochEnd(
        at_s=0.0, epoch=0, epochs=1, step=34, seconds=1.0, whole=False, steps=35, steps_in_epoch=2000
    )
    (row,) = rows(history_csv(run_told(epochs={ANNA: (epoch,)})))
    assert (row["steps"], row["epoch_steps"], row["epoch_steps_planned"]) == ("35", "35", "2000")
    assert epoch_words(epoch) == "1/1, broken off after 35 of 2,000 steps"
