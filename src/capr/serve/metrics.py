"""Metrics in the Prometheus text format. Each worker counts its own requests; a reply adds up those of all."""

from __future__ import annotations

import json
import logging
import os
import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

log = logging.getLogger("capr")
MEDIA = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
INTERVAL = 1.0  # seconds between two writes of the counts
HELP = {
    "capr_requests_total": ("counter", "Requests by route and status."),
    "capr_request_seconds": ("histogram", "Seconds until the reply, by route."),
    "capr_wrong_tokens_total": ("counter", "Tokens that were not valid."),
    "capr_refused_total": ("counter", "Requests refused because too many waited."),
    "capr_audit_failures_total": ("counter", "Replies not sent because the audit trail could not be written."),
    "capr_work_running": ("gauge", "Requests that run in a thread."),
    "capr_work_waiting": ("gauge", "Requests that wait for a thread."),
    "capr_resident_bytes": ("gauge", "Memory of the workers."),
    "capr_workers": ("gauge", "Workers of the server."),
}
Counts = dict[str, float]


class Metrics:
    """The counts of this worker, and those that the other workers wrote to a folder.

    Args:
        folder: the folder that the workers of one server share; None for a single worker.
        gauges: functions that return current values, by name.
    """

    def __init__(self, folder: Path | None, gauges: Mapping[str, Callable[[], float]]) -> None:
        self._folder, self._gauges = folder, gauges
        self._counts: Counts = defaultdict(float)
        self._lock = threading.Lock()
        self._failed = False

    def count(self, name: str, by: float = 1.0, **labels: str) -> None:
        """Add to a counter."""
        with self._lock:
            self._counts[_sample(name, labels)] += by

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        labels = {"method": method, "route": route}
        with self._lock:
            self._counts[_sample("capr_requests_total", {**labels, "status": str(status)})] += 1
            for bound in (*BUCKETS[bisect_left(BUCKETS, seconds) :], "+Inf"):
                self._counts[_sample("capr_request_seconds_bucket", {**labels, "le": str(bound)})] += 1
            self._counts[_sample("capr_request_seconds_sum", labels)] += seconds
            self._counts[_sample("capr_request_seconds_count", labels)] += 1

    def write_counts(self) -> Counts:
        """Write the counts of this worker to the folder, and return them."""
        with self._lock:
            counts = dict(self._counts)
        for name, read in self._gauges.items():
            counts[name] = read()
        counts["capr_workers"] = 1.0
        if self._folder is not None:
            file = self._folder / f"{os.getpid()}.json"
            part = file.with_suffix(".part")
            try:
                part.write_text(json.dumps(counts))
                part.replace(file)
                self._failed = False
            except OSError as error:  # the disk may be full; this worker goes on counting
                if not self._failed:
                    log.warning("the metrics of this worker cannot be written for the others: %s", error)
                self._failed = True
        return counts

    def text(self) -> str:
        """Return the metrics of all workers; those of the others may be a second old."""
        total: Counts = defaultdict(float, self.write_counts())
        for file in sorted(self._folder.glob("*.json")) if self._folder is not None else ():
            if file.stem == str(os.getpid()):
                continue
            is_dead = not Path(f"/proc/{file.stem}").exists() and Path("/proc").is_dir()
            for name, value in json.loads(file.read_text()).items():
                if not (is_dead and HELP.get(name, ("counter", ""))[0] == "gauge"):  # counters survive a worker
                    total[name] += value
        lines = []
        for name, (kind, description) in HELP.items():
            samples = sorted(sample for sample in total if _family(sample) == name)
            if samples:
                lines += [f"# HELP {name} {description}", f"# TYPE {name} {kind}"]
                lines += [f"{sample} {_number(total[sample])}" for sample in samples]
        return "\n".join(lines) + "\n"


def resident() -> float:
    """Return the memory of this process in bytes; 0 where the system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0.0
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def _number(value: float) -> str:
    """Return all digits of a number, so that a counter of millions still grows by one."""
    return str(int(value)) if value.is_integer() else repr(value)


def _sample(name: str, labels: Mapping[str, str]) -> str:
    if not labels:
        return name
    pairs = ",".join(f'{label}="{_escape(value)}"' for label, value in labels.items())
    return f"{name}{{{pairs}}}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _family(sample: str) -> str:
    """Return the name of the metric of a sample, without the suffix of a histogram."""
    name = sample.partition("{")[0]
    for suffix in ("_bucket", "_sum", "_count"):
        if name.removesuffix(suffix) == "capr_request_seconds":
            return "capr_request_seconds"
    return name
