"""`python -m tests.bench [M1 M3 …]`: run the measures, print a table, write build/bench.json."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.container_overhead import measure_container_overhead, measure_sizes, measure_throughput
from tests.bench.figures import Figure
from tests.bench.intake import measure_intake
from tests.bench.judgement import measure_judgement
from tests.bench.judging_overhead import measure_overhead
from tests.bench.packing import measure_packing
from tests.bench.pages import measure_pages
from tests.bench.probe_cost import measure_probe_cost
from tests.bench.rehearsed import measure_rehearsal
from tests.bench.second_look import measure_second_look
from tests.bench.source_checks import measure_source_checks
from tests.bench.through_queue import measure_queue_throughput, measure_recovery

MEASURES: dict[str, Callable[[int], Iterator[Figure]]] = {
    "M1": measure_overhead,  # with M1r and M2, from the same attempts
    "M1s": measure_second_look,
    "M2": measure_container_overhead,  # M1 and M2 in containers
    "M3": measure_probe_cost,
    "M4": measure_source_checks,
    "M5": measure_throughput,
    "M5q": measure_queue_throughput,  # M5 by real workers, from the queue to the stored report
    "M6": measure_intake,
    "M7": measure_pages,
    "M8": measure_packing,
    "M9": measure_recovery,  # 50 kills, half an hour and more
    "M10": measure_judgement,  # an hour and more
    "M11": measure_sizes,
    "M12": measure_rehearsal,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("measures", nargs="*", choices=[[], *MEASURES], help="default: all")
    parser.add_argument(
        "--runs", type=int, default=20, help="attempts for M1, pairs elsewhere in proportion (default 20)"
    )
    parser.add_argument("--out", type=Path, default=Path("build/bench.json"))
    args = parser.parse_args()
    console = Console(stderr=True)
    figures: list[Figure] = []
    for name in args.measures or MEASURES:
        console.print(f"measuring {name} …")
        for figure in MEASURES[name](args.runs):
            console.print(f"  {figure.measure} {figure.setting}: {figure.median:.4f} {figure.unit}")
            figures.append(figure)
    table = Table(title=f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", box=None)
    for heading in ("measure", "setting", "median", "min", "max", "bar", "runs", ""):
        table.add_column(
            heading, justify="right" if heading in ("median", "min", "max", "bar", "runs") else "left"
        )
    for f in figures:
        values = [
            f"{v:.4f}" if f.unit == "s" else f"{v:.3f}" for v in (f.median, min(f.values), max(f.values))
        ]
        table.add_row(
            f.measure,
            f.setting,
            *values,
            "" if f.bar is None else f"{f.bar:g}",
            str(f.runs),
            "" if f.bar is None else "met" if f.met else "MISSED",
        )
    Console().print(table)
    written: dict[str, dict[str, object]] = {}
    for f in figures:
        written.setdefault(f.measure, {})[f.setting] = f.to_json()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
