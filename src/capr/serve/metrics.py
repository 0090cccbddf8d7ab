"""Metrics in Prometheus' text format; each worker counts for itself, and whoever is asked adds them up."""

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
EVERY = 1.0  # seconds after which a worker leaves its counts for the others
HELP = {
    "capr_requests_total": ("counter", "Requests by route and status."),
    "capr_request_seconds": ("histogram", "Seconds until the reply, by route."),
    "capr_wrong_tokens_total": ("counter", "Tokens that were not valid."),
    "capr_refused_total": ("counter", "Requests refused since too many waited."),
    "capr_audit_failures_total": ("counter", "Replies held back since the audit trail could not be written."),
    "capr_work_running": ("gauge", "Requests that a thread works for."),
    "capr_work_waiting": ("gauge", "Requests that wait for a thread."),
    "capr_resident_bytes": ("gauge", "Memory of the workers."),
    "capr_workers": ("gauge", "Workers that have counted."),
}
Counts = dict[str, float]


class Metrics:
    """Counts of this worker, and those that the others left in a folder.

    Args:
        folder: shared by the workers of one server; without one, a worker tells of itself alone.
        gauges: read whenever somebody asks.
    """

    def __init__(self, folder: Path | None, gauges: Mapping[str, Callable[[], float]]) -> None:
        self._folder, self._gauges = folder, gauges
        self._counts: Counts = defaultdict(float)
        self._changing = threading.Lock()
        self._failed = False

    def count(self, name: str, by: float = 1.0, **labels: str) -> None:
        """Adds to a counter."""
        with self._changing:
            self._counts[_sample(name, labels)] += by

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Counts a request."""
        labels = {"method": method, "route": route}
        with self._changing:
            self._counts[_sample("capr_requests_total", {**labels, "status": str(status)})] += 1
            for bound in (*BUCKETS[bisect_left(BUCKETS, seconds) :], "+Inf"):
                self._counts[_sample("capr_request_seconds_bucket", {**labels, "le": str(bound)})] += 1
            self._counts[_sample("capr_request_seconds_sum", labels)] += seconds
            self._counts[_sample("capr_request_seconds_count", labels)] += 1

    def keep(self) -> Counts:
        """Leaves the counts of this worker where the others find them, and gives them."""
        with self._changing:
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
            except OSError as error:  # a disk that is full, say: this worker goes on counting
                if not self._failed:
                    log.warning("the metrics of this worker cannot be left for the others: %s", error)
                self._failed = True
        return counts

    def text(self) -> str:
        """What all workers counted; the last second of the others may be missing."""
        total: Counts = defaultdict(float, self.keep())
        for file in sorted(self._folder.glob("*.json")) if self._folder is not None else ():
            if file.stem == str(os.getpid()):
                continue
            gone = not Path(f"/proc/{file.stem}").exists() and Path("/proc").is_dir()
            for name, value in json.loads(file.read_text()).items():
                if not (gone and HELP.get(name, ("counter", ""))[0] == "gauge"):  # what it counted stays counted
                    total[name] += value
        lines = []
        for name, (kind, told) in HELP.items():
            samples = sorted(sample for sample in total if _family(sample) == name)
            if samples:
                lines += [f"# HELP {name} {told}", f"# TYPE {name} {kind}"]
                lines += [f"{sample} {_number(total[sample])}" for sample in samples]
        return "\n".join(lines) + "\n"


def resident() -> float:
    """Bytes of memory of this process; 0 where nobody tells."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0.0
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def _number(value: float) -> str:
    """Every digit, so that a counter of millions still grows by one."""
    return str(int(value)) if value.is_integer() else repr(value)


def _sample(name: str, labels: Mapping[str, str]) -> str:
    if not labels:
        return name
    told = ",".join(f'{label}="{_quoted(value)}"' for label, value in labels.items())
    return f"{name}{{{told}}}"


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _family(sample: str) -> str:
    name = sample.partition("{")[0]
    for end in ("_bucket", "_sum", "_count"):
        if name.removesuffix(end) == "capr_request_seconds":
            return "capr_request_seconds"
    return name
