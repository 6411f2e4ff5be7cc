"""Two people's use of Tandem, from the first double click to the last run, in order."""

from __future__ import annotations

import time

from tests.tour.glances import at_epoch, chief, code, coming, enabled
from tests.tour.laptop import PAINTED_S, TRAINED_S, Laptop
from tests.tour.photographs import make as make_photographs
from tests.tour.tasks import TASKS, UNASKED

LONG, SHORT = "--epochs 400 --batch-size 256", "--epochs 12"
"""Arguments of the digits example."""
SEVERAL = "--batch-size 32,64,128"
MOST_PRESSES, MOST_PRESSES_ELSEWHERE = 3, 2
"""From two new windows to a falling loss: on the starting laptop, and on the other."""
PHOTOGRAPHS_BYTES = 2_000_000_000
_CRASHING = '''"""Reads a file that is not there."""
import keras

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
data = open("measurements.csv").read()
'''


def first_run(anna: Laptop, ben: Laptop) -> None:
    """Ben looks around alone; then Anna begins, and they find each other."""
    ben.open_tandem()
    ben.sees("next")
    ben.picture("first-start")
    ben.fill("name", "ben")
    ben.gone("Checking the network…")
    ben.picture("first-run-nobody-there")
    ben.click("skip")
    ben.sees("look-for-cause")
    ben.picture("nobody-found")
    ben.screen.press("ctrl+5")
    ben.click("welcome")
    ben.sees("next")

    anna.open_tandem()
    anna.fill("name", "anna")
    anna.gone("Checking the network…")
    anna.sees("Pair with ben")
    ben.sees("pair")
    anna.picture("first-run-found-ben")
    ben.picture("found-anna")
    _scene(anna, ben, 1.5)
    for laptop in (anna, ben):
        laptop.screen.presses = 0


def pair(anna: Laptop, ben: Laptop) -> None:
    """Both compare the digits; Anna uses the mouse, Ben the keyboard."""
    anna.click("Pair with ben")
    codes = [laptop.until(code, "six digits").text for laptop in (anna, ben)]
    anna.picture("pairing-code")
    ben.picture("pairing-code")
    assert codes[0] == codes[1], codes
    _scene(anna, ben, 2.0)
    anna.album.film.keep("pairing", (anna.screen, ben.screen))
    anna.click("same")
    anna.reads("Waiting for ben")
    anna.picture("pairing-waiting")
    ben.tab_to("same")
    ben.picture("pairing-by-keyboard")
    _scene(anna, ben, 1.5)
    ben.screen.press("Return")
    for laptop, other in ((anna, "ben"), (ben, "anna")):
        laptop.reads("Step 2 of 2")
        laptop.reads(f"Paired with {other}")
    anna.picture("first-run-sample")
    ben.picture("paired")
    _scene(anna, ben, 1.5)


def train_digits(anna: Laptop, ben: Laptop) -> None:
    """From two fresh windows to a loss that falls, in few presses, and to the end."""
    anna.click("train-sample")
    ben.sees("allow-once")
    ben.picture("first-consent")
    anna.picture("first-waiting-for-consent")
    _scene(anna, ben, 2.5)
    ben.click("allow-once")
    ben.sees("stop")
    _scene(anna, ben, 1.5)
    for laptop in (anna, ben):
        laptop.until(at_epoch(2), "the second epoch", TRAINED_S)
    for laptop in (anna, ben):
        laptop.picture("first-training")
    for laptop, most in ((anna, MOST_PRESSES), (ben, MOST_PRESSES_ELSEWHERE)):
        presses = laptop.screen.presses
        print(f"  {laptop.name}: {presses} presses from a fresh window to a loss that falls", flush=True)
        assert presses <= most, f"{laptop.name} had to press {presses} times, {most} at most"
    for laptop in (anna, ben):
        laptop.sees("new-run", limit_s=TRAINED_S)
        laptop.picture("first-finished")
    ben.click("new-run")
    ben.picture("nothing-chosen")


def choose(anna: Laptop, ben: Laptop) -> None:
    """Another run of the digits; who does what."""
    anna.click("new-run")
    anna.until(enabled("train"), "Train")
    anna.reads("Ready: 2 laptops")
    anna.picture("train-setup")
    anna.click("more")
    anna.reads("share by speed")
    anna.scroll_to("swap-roles")
    anna.click("swap-roles")
    anna.until(chief("ben"), "swapped roles")
    anna.picture("roles-swapped")
    anna.drag_row("ben", "anna (this laptop)")
    anna.until(chief("anna (this laptop)"), "roles swapped back")
    anna.picture("roles-dragged")
    anna.album.film.keep("roles", (anna.screen,))
    anna.click("swap-roles")
    anna.until(chief("ben"), "roles swapped again")
    anna.click("tf-config")
    anna.scroll_to("copy-tf-config")
    anna.picture("tf-config")
    anna.click("tf-config")
    anna.click("Role of ben")
    anna.picture("role-list", still=False)
    anna.screen.press("Escape")
    anna.click("options")
    anna.scroll_to("data")
    anna.picture("options")
    anna.click("options")
    anna.fill("arguments", SEVERAL)
    anna.click("several")
    anna.reads("Start 3 trials")
    anna.picture("several-values")
    anna.click("several")
    anna.fill("arguments", LONG)
    anna.click("shares-by-hand")
    anna.picture("shares-by-hand")
    anna.click("shares-by-hand")
    anna.until(enabled("train"), "Train")
    last = [thing.name for thing in anna.look() if thing.name.startswith("finding-")][-1]
    anna.scroll_to(last)
    anna.picture("before-the-start")


def train(anna: Laptop, ben: Laptop) -> None:
    """Ben consents; both see the loss fall, and what each laptop does."""
    anna.click("train")
    ben.sees("allow-once")
    ben.sees("request-files")
    ben.picture("consent")
    ben.click("consent-details")
    ben.picture("consent-details")
    ben.click("consent-details")
    anna.sees("stop")
    anna.picture("waiting-for-consent")
    ben.click("allow-once")
    for laptop in (anna, ben):
        laptop.sees("stop")
        laptop.picture("starting")
    for laptop in (anna, ben):
        laptop.until(at_epoch(3), "the third epoch", TRAINED_S)
        laptop.picture("training")
    # The film continues with this run: the first one ends between two looks.
    for epoch in range(4, 25, 4):
        anna.until(at_epoch(epoch), f"epoch {epoch}", TRAINED_S)
        _scene(anna, ben, 0.7)
    _scene(anna, ben, 3.0)
    anna.album.film.keep("training", (anna.screen, ben.screen))
    for laptop in (anna, ben):
        laptop.click("screen-machines")
        laptop.reads("Step: ")
        laptop.picture("machines")
        laptop.click("screen-train")
    ben.click("log")
    ben.scroll_to("copy-log")
    ben.picture("log")
    ben.click("log")
    ben.scroll_to("stop")
    anna.click("screen-devices")
    anna.picture("devices-training")
    anna.click("screen-train")
    anna.click("Logarithmic scale of loss")
    anna.picture("log-scale")
    anna.click("Logarithmic scale of loss")
    for laptop in (anna, ben):
        laptop.until(at_epoch(40), "the fortieth epoch", TRAINED_S)
        laptop.picture("loss-falls")


def close_and_stop(anna: Laptop, ben: Laptop) -> None:
    """The window may go while the run goes on; then Anna stops it."""
    anna.screen.ask_to_close()
    anna.sees("keep-training")
    anna.picture("closing-while-training")
    anna.click("keep-training")
    anna.until(lambda things: not things, "the window to go")
    anna.open_tandem_again()
    anna.until(lambda things: things, "the window to come back")
    anna.screen.focus()
    anna.picture("back-from-background")
    anna.click("stop")
    for laptop in (anna, ben):
        laptop.reads("Stopped on anna", limit_s=TRAINED_S)
        laptop.picture("stopped")


def run_again(anna: Laptop, ben: Laptop) -> None:
    """Found in the history, changed a little, trained to its end."""
    anna.screen.press("ctrl+4")
    anna.click_row("digits.py")
    anna.picture("runs")
    anna.click("run-again")
    anna.reads("Ready: 2 laptops")
    anna.fill("arguments", SHORT)
    anna.until(enabled("train"), "Train")
    anna.click("train")
    ben.click("allow-always")
    for laptop in (anna, ben):
        laptop.sees("new-run", limit_s=TRAINED_S)
        laptop.picture("finished")


def history(anna: Laptop, ben: Laptop) -> None:
    """A past run, two over each other, and what the other laptop kept; small windows, too."""
    anna.screen.press("ctrl+4")
    anna.until(lambda things: sum(t.kind == "row" for t in things) == 3, "three runs")
    anna.click_row("Finished")
    anna.screen.press("F2")
    anna.screen.write("short run")
    anna.screen.press("Return")
    anna.until(lambda things: any(t.kind == "row" and "short run" in t.text for t in things), "the name")
    anna.screen.press("Return")
    anna.sees("back")
    anna.click("annotate")
    anna.screen.write("fewer epochs")
    anna.screen.press("Return")
    anna.reads("fewer epochs")
    anna.picture("past-run")
    anna.click("back")
    anna.click_row("short run")
    anna.click_row("Stopped", held="ctrl")
    anna.picture("two-chosen")
    anna.click("compare")
    anna.reads("2 runs compared")
    anna.reads(" was better: ")
    anna.picture("overlay")
    anna.album.film.keep("compared", (anna.screen,))
    anna.click("back")
    anna.click_row("Stopped")
    anna.screen.press("Delete")
    anna.until(lambda things: sum(t.kind == "row" for t in things) == 2, "two runs")
    anna.picture("undo")
    anna.click("undo")
    anna.until(lambda things: sum(t.kind == "row" for t in things) == 3, "all runs")
    ben.screen.press("ctrl+4")
    ben.click_row("digits.py")
    ben.picture("runs")
    ben.screen.press("ctrl+2")
    size = ben.screen.window
    ben.screen.resize(720, 480)
    ben.picture("small-window")
    ben.screen.press("ctrl+3")
    ben.picture("small-window-machines")
    ben.screen.press("ctrl+1")
    ben.picture("small-window-devices")
    ben.screen.resize(*size)


def settings(anna: Laptop, ben: Laptop) -> None:
    """The doctor, and the dark theme on every screen."""
    anna.screen.press("ctrl+5")
    anna.picture("settings")
    anna.click("doctor")
    anna.until(lambda things: any(t.name.startswith("finding-") for t in things), "the doctor's findings")
    anna.until(enabled("doctor"), "the doctor to be done")
    anna.scroll_to("doctor")
    anna.picture("doctor")
    anna.scroll_to("welcome")
    anna.picture("help")
    anna.choose("theme", "Dark")
    anna.scroll_to("This laptop")
    anna.picture("settings-dark")
    for number, screen in enumerate(("devices", "train", "machines", "runs"), start=1):
        anna.screen.press(f"ctrl+{number}")
        anna.picture(f"{screen}-dark")
        if screen == "train":
            anna.album.film.keep("finished", (anna.screen,))


def photographs(anna: Laptop, ben: Laptop) -> None:
    """A folder of 2 GB from a drop to the first step, with its way on both screens."""
    make_photographs(anna.folder / "photographs", PHOTOGRAPHS_BYTES)
    ben.screen.press("ctrl+1")
    if ben.sees(UNASKED).checked:
        ben.click(UNASKED)
    ben.screen.press("ctrl+2")
    anna.screen.press("ctrl+2")
    anna.click("new-run")
    dropped_s = anna.drop_folder(anna.home / "photographs", "script")
    anna.reads("Reading the files: ")
    anna.picture("photographs-read")
    anna.until(enabled("train"), "Train")
    ready_s = time.monotonic()
    anna.picture("photographs-ready")
    anna.click("train")
    ben.sees("allow-once")
    asked_s = time.monotonic()
    ben.picture("photographs-asked")
    ben.click("allow-always")
    allowed_s = time.monotonic()
    for laptop in (ben, anna):
        laptop.until(coming, "how much has come, how fast, and the time left", TRAINED_S)
        laptop.picture("photographs-on-their-way")
    anna.until(lambda things: not coming(things), "all photographs to be there", TRAINED_S)
    came_s = time.monotonic()
    for laptop in (anna, ben):
        laptop.until(at_epoch(1), "the first step", TRAINED_S)
    stepped_s = time.monotonic()
    for laptop in (anna, ben):
        laptop.picture("photographs-trained")
    print(
        f"  {PHOTOGRAPHS_BYTES / 1e9:g} GB: ready {ready_s - dropped_s:.1f} s after the drop, asked "
        f"{asked_s - ready_s:.1f} s later; {came_s - allowed_s:.1f} s until all were there, and "
        f"{stepped_s - came_s:.1f} s more to the first step",
        flush=True,
    )
    anna.click("stop")
    for laptop in (anna, ben):
        laptop.sees("new-run", limit_s=TRAINED_S)


def failures(anna: Laptop, ben: Laptop) -> None:
    """A script that breaks, and a laptop that leaves in the middle."""
    (anna.folder / "broken.py").write_text(_CRASHING)
    anna.screen.press("ctrl+2")
    anna.click("new-run")
    anna.picture("train-setup-dark")
    anna.click("choose-script")
    anna.sees("fileNameEdit")
    anna.picture("choosing-a-file")
    anna.screen.write(str(anna.home / "broken.py"))
    anna.screen.press("Return")
    anna.gone("fileNameEdit")
    anna.reads("broken.py")
    anna.until(enabled("train"), "Train")
    anna.scroll_to("train")
    anna.picture("broken-script-ahead")
    anna.click("train")
    anna.reads("measurements.csv", limit_s=TRAINED_S)
    anna.picture("broken-script")
    anna.click("traceback")
    anna.picture("broken-script-traceback")
    anna.click("new-run")
    anna.click("examples")
    anna.click("example-digits")
    anna.fill("arguments", LONG)
    anna.until(enabled("train"), "Train")
    anna.click("train")
    ben.screen.press("ctrl+2")
    ben.until(at_epoch(2), "the second epoch", TRAINED_S)
    ben.screen.ask_to_close()
    ben.click("stop-and-quit")
    ben.until_ended()
    anna.sees("new-run", limit_s=TRAINED_S)
    anna.picture("ben-left")
    anna.screen.press("ctrl+1")
    anna.reads("Not")
    anna.picture("ben-away-dark")


STORY = (
    first_run,
    pair,
    train_digits,
    choose,
    train,
    close_and_stop,
    run_again,
    history,
    settings,
    *TASKS,
    photographs,
    failures,
)


def _scene(anna: Laptop, ben: Laptop, hold_s: float) -> None:
    """A frame of the film for the README."""
    for laptop in (anna, ben):
        laptop.screen.rest()
    time.sleep(PAINTED_S)
    anna.album.film.take((anna.screen, ben.screen), hold_s)
