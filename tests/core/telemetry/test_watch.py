"""Readings come once a period, from a thread that may hang without blocking anybody."""

import asyncio
import threading

from core.telemetry.gpus import Gpus
from core.telemetry.sampler import Sampler
from core.telemetry.watch import Watch
from core.vocabulary.readings import Reading


class CountedGpus(Gpus):
    def __init__(self) -> None:
        super().__init__(None, "CPU only: a test.")
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()


class BrokenSampler(Sampler):
    tried = 0
    thrice = threading.Event()

    def sample(self) -> Reading:
        self.tried += 1
        if self.tried == 3:
            self.thrice.set()
        raise RuntimeError("the sensor broke")


async def test_readings_come_until_it_is_stopped() -> None:
    gpus = CountedGpus()
    telemetry = Watch(find_gpus=lambda: gpus, period_s=0.001, stop_limit_s=60.0)
    readings: asyncio.Queue[Reading] = asyncio.Queue()

    has = await telemetry.start()
    telemetry.begin(readings.put_nowait)
    for _ in range(3):
        reading = await asyncio.wait_for(readings.get(), 30)
        assert reading.no_gpu == "CPU only: a test."
    await telemetry.stop()
    count = readings.qsize()
    await asyncio.sleep(0)

    assert has.cores >= 1
    assert readings.qsize() == count
    assert gpus.closed.is_set()


async def test_a_broken_sensor_is_reported_once() -> None:
    telemetry = Watch(find_gpus=CountedGpus, make_sampler=BrokenSampler, period_s=0.001)
    failures: list[Exception] = []

    await telemetry.start()
    telemetry.begin(lambda reading: None, failures.append)
    assert await asyncio.to_thread(BrokenSampler.thrice.wait, 30)
    await telemetry.stop()

    assert [str(error) for error in failures] == ["the sensor broke"]


async def test_a_driver_that_hangs_costs_its_gpus_and_nothing_else() -> None:
    hang = threading.Event()
    gpus = CountedGpus()

    def find() -> Gpus:
        hang.wait(60)
        return gpus

    telemetry = Watch(find_gpus=find, period_s=0.001, first_limit_s=0.01, stop_limit_s=0.01)
    has = await telemetry.start()
    await telemetry.stop()

    assert has.gpus == () and has.cpu
    assert not gpus.closed.is_set()
    hang.set()
    assert await asyncio.to_thread(gpus.closed.wait, 30)


async def test_a_driver_that_fails_is_reported_and_costs_its_gpus() -> None:
    def find() -> Gpus:
        raise RuntimeError("out of its mind")

    telemetry = Watch(find_gpus=find)
    failures: list[Exception] = []

    has = await telemetry.start()
    telemetry.begin(lambda reading: None, failures.append)
    await telemetry.stop()

    assert has.gpus == () and has.cpu
    assert [str(error) for error in failures] == ["out of its mind"]


async def test_stop_without_start_is_nothing() -> None:
    await Watch().stop()
