"""What the figures were measured on, and how busy it was with other work meanwhile."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib.metadata import version
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """The machine and the versions that every bench depends on; the benches add their databases."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "django": version("Django"),
        "sqlite": sqlite3.sqlite_version,
        "priority": _priority(),
    }


def load_average() -> list[float]:
    """Runnable tasks over 1, 5 and 15 minutes; this bench's own are among them."""
    return [round(each, 2) for each in os.getloadavg()]


def busy_seconds() -> float:
    """CPU seconds that the whole machine has worked since it started, on all cores together."""
    user, nice, system, _idle, _iowait, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int | str = "self") -> int:
    """The memory that a process holds now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def child_with(argument: str) -> int:
    """The process that this one has started with this argument."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return next(int(pid) for pid in children if argument in Path(f"/proc/{pid}/cmdline").read_text().split("\0"))


def _priority() -> str:
    """`chrt -f 10` before the command keeps the others' work out of the figures, as far as a core can."""
    policies = {os.SCHED_FIFO: "real-time (FIFO)", os.SCHED_RR: "real-time (RR)"}
    return policies.get(os.sched_getscheduler(0), f"nice {os.nice(0)}")


def _cpu_model() -> str:
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return names[0].partition(":")[2].strip() if names else platform.machine()
