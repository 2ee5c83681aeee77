"""What the figures depend on: processor, kernel, disk."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

# Enough for a p99 that is not one sample's luck alone.
SYNCS = 300
PROBE_LOOPS = 1_000_000


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return f"{line.split(':', 1)[1].strip()}, {os.cpu_count()} CPUs"
    return f"{platform.machine()}, {os.cpu_count()} CPUs"


def virtual() -> bool:
    return any(" hypervisor" in line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))


def sync_times_ms(directory: Path) -> tuple[float, float]:
    """p50 and p99 of an append of 4 KiB with fdatasync, which is what a confirm waits for at least."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "sync-probe"
    times = []
    with open(path, "wb", buffering=0) as file:
        for _ in range(SYNCS):
            file.write(b"x" * 4096)
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - start) * 1000)
    path.unlink()
    times.sort()
    return times[len(times) // 2], times[len(times) * 99 // 100]


def probe_ms() -> float:
    """CPU time of a fixed piece of work. It grows while other programs, or other guests of the host, compete for caches and cores;
    then everything costs more, and only figures that were taken in turns can be compared."""
    start = time.process_time()
    total = 0
    for i in range(PROBE_LOOPS):
        total += i * i
    return (time.process_time() - start) * 1000


def description(directory: Path) -> dict:
    p50, p99 = sync_times_ms(directory)
    return {
        "processor": processor() + (" (virtual machine)" if virtual() else ""),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "kernel": f"{platform.system()} {platform.release()}",
        "fdatasync_ms": {"p50": round(p50, 3), "p99": round(p99, 3)},
        "load_average": [round(load, 1) for load in os.getloadavg()],
    }
