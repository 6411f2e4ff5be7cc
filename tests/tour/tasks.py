"""What a new user wants of the window: to train a script of one's own, to find the better of two runs, to try
three learning rates, and to send the report. Real training, in the window alone."""

from __future__ import annotations

import random
from pathlib import Path

from tests.tour.glances import enabled
from tests.tour.laptop import TRAINED_S, Laptop

UNASKED = "May run scripts here without asking"
RATES = ("0.01", "0.003", "0.001")
_SCRIPT = '''"""Learns the prices of flats."""
import argparse
import csv
from pathlib import Path

import keras
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--epochs", type=int, default=4)
args = parser.parse_args()

keras.utils.set_random_seed(1)
rows = list(csv.reader(Path(__file__).with_name("flats.csv").open()))[1:]
data = np.array(rows, dtype="float32")
layers = [keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)]
model = keras.Sequential([keras.Input((3,)), *layers])
model.compile(keras.optimizers.Adam(args.lr), "mse", metrics=["mae"])
model.fit(data[:, :3], data[:, 3], batch_size=256, epochs=args.epochs, validation_split=0.2)
model.save("flats.keras")
'''


def own_script(anna: Laptop, ben: Laptop) -> None:
    """Anna drops her folder; Ben is asked, and reads what the script does with his files."""
    _write(anna.folder / "flats")
    ben.screen.press("ctrl+1")
    if ben.sees(UNASKED).checked:
        ben.click(UNASKED)
    ben.screen.press("ctrl+2")
    anna.screen.press("ctrl+2")
    anna.click("new-run")
    anna.drop_folder(anna.home / "flats", "script")
    anna.click("reset-roles")  # an earlier part made Ben the chief; files lie beside the script on the chief
    anna.until(enabled("train"), "Train")
    anna.picture("own-script")
    anna.click("train")
    ben.reads("Reads: flats.csv")
    ben.picture("own-script-asked")
    ben.click("allow-always")
    anna.sees("new-run", limit_s=TRAINED_S)
    anna.reads("The script wrote flats.keras")
    anna.picture("own-script-trained")
    assert (anna.folder / "flats" / "flats.keras").is_file(), "the model belongs beside the script"


def better_of_two(anna: Laptop, ben: Laptop) -> None:
    """The same with another learning rate; *Compare* says which was better."""
    anna.click("again")
    anna.fill("argument-lr", RATES[-1])
    anna.until(enabled("train"), "Train")
    anna.click("train")
    anna.sees("stop")
    anna.sees("new-run", limit_s=TRAINED_S)
    anna.screen.press("ctrl+4")
    anna.click_row(f"flats/train.py, --lr {RATES[-1]}")
    anna.click_row("flats/train.py | Finished", held="ctrl")
    anna.click("compare")
    anna.reads("“lr default” was better: val_loss")
    anna.picture("better-of-two")
    anna.click("back")


def three_rates(anna: Laptop, ben: Laptop) -> None:
    """Trials of three learning rates, shared out; then the best of them, longer, on both."""
    anna.screen.press("ctrl+2")
    anna.click("new-run")
    anna.click("several")
    anna.fill("argument-lr", ",".join(RATES))
    anna.until(enabled("train"), "Train")
    anna.reads(f"Start {len(RATES)} trials")
    anna.click("train")
    ben.screen.press("ctrl+2")
    ben.reads("Started on anna. Trial", limit_s=TRAINED_S)
    ben.picture("three-rates")
    anna.reads("3 of 3 trials have a result", limit_s=TRAINED_S)
    anna.reads("Best: trial 1 ")
    anna.picture("three-rates")
    anna.screen.press("ctrl+4")
    anna.click_row("3 trials, the best: ")
    anna.click("details")
    anna.sees("back-from-sweep")
    anna.picture("trials-kept")
    anna.screen.press("ctrl+2")
    anna.click("train-best")
    anna.until(enabled("train"), "Train")
    anna.reads("Train on 2 laptops")
    anna.picture("best-again")
    anna.click("train")
    anna.sees("stop")
    anna.sees("new-run", limit_s=TRAINED_S)


def send_report(anna: Laptop, ben: Laptop) -> None:
    """Anna sends the report of what she sees; Ben hears of it on any screen, and finds it later."""
    ben.screen.press("ctrl+3")
    anna.click("send-report")
    anna.click_row("ben")
    anna.reads("Sent to ben")
    ben.reads("anna sent the report of train.py")
    ben.sees("notice-offer")
    ben.picture("report-came")
    ben.click("Dismiss")
    ben.screen.press("ctrl+4")
    ben.click("received-reports")
    ben.sees("open-received")
    ben.picture("report-kept")
    ben.screen.press("ctrl+2")


TASKS = (own_script, better_of_two, three_rates, send_report)


def _write(folder: Path) -> None:
    folder.mkdir()
    (folder / "train.py").write_text(_SCRIPT)
    chance = random.Random(7)
    lines = ["area,floor,age,price"]
    for _ in range(4000):
        area, floor, age = (chance.gauss(0, 1) for _ in range(3))
        lines.append(f"{area:.4f},{floor:.4f},{age:.4f},{2 * area + floor - age * age:.4f}")
    (folder / "flats.csv").write_text("\n".join(lines) + "\n")
