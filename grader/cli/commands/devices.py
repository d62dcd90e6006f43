"""Show this host's GPUs and cores: what is fit for use and why not, who holds what, who waits, since when."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grader.run.devices.hardware import Inventory
    from grader.run.devices.lease_status import LeaseStatus

NAME = "devices"
ORDER = 72


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader devices`."""
    parser.add_argument(
        "--release", metavar="UUID", help="let a GPU out of quarantine, once what was wrong with it is mended"
    )


def run(args: argparse.Namespace) -> int:
    """Print inventory, leases and queue."""
    from grader.cli.printing import emit_json
    from grader.errors import EXIT_ACCEPTED, InfraError, UsageError
    from grader.run.devices.quarantine import release_gpu
    from grader.run.host_devices import host_devices

    devices = host_devices()
    if args.release and not release_gpu(devices.folder, args.release):
        raise UsageError(
            f"no GPU {args.release} is in quarantine here: `grader devices` names those that are"
        )
    inventory, entries = devices.inventory(), devices.listing()
    if args.json:
        emit_json(_out(inventory, entries))
    else:
        _print(inventory, entries)
    return InfraError.exit_code if inventory.hangs else EXIT_ACCEPTED


def _holder(
    entries: Sequence[LeaseStatus], *, uuid: str = "", cpus: Sequence[int] = ()
) -> LeaseStatus | None:
    for entry in entries:
        if uuid in entry.gpus or not set(cpus).isdisjoint(entry.cpus):
            return entry
    return None


def _out(inventory: Inventory, entries: Sequence[LeaseStatus]) -> dict[str, object]:
    from dataclasses import asdict

    def token(entry: LeaseStatus | None) -> int | None:
        return None if entry is None else entry.token

    return {
        "schema": 1,
        "gpus": [
            asdict(gpu) | {"distances": dict(gpu.distances), "token": token(_holder(entries, uuid=gpu.uuid))}
            for gpu in inventory.gpus
        ],
        "no_gpus": inventory.no_gpus,
        "hangs": inventory.hangs,
        "cores": [
            asdict(core) | {"token": token(_holder(entries, cpus=core.cpus))} for core in inventory.cores
        ],
        "leases": [asdict(entry) for entry in entries if entry.token is not None],
        "queue": [asdict(entry) for entry in entries if entry.token is None],
    }


def _print(inventory: Inventory, entries: Sequence[LeaseStatus]) -> None:
    from rich.table import Table
    from rich.text import Text

    from grader.cli.printing import stdout_console
    from grader.run.devices.hardware import cpu_list

    console = stdout_console()
    if inventory.no_gpus:
        console.print(Text(f"GPUs   none: {inventory.no_gpus}"), soft_wrap=True)
    else:
        table = Table(box=None, pad_edge=False)
        for heading in ("GPU", "name", "memory", "node", "state", "UUID"):
            table.add_column(heading, overflow="fold")
        drivers = {f"driver {gpu.driver}, CUDA {gpu.cuda or '?'}" for gpu in inventory.gpus if gpu.driver}
        for gpu in inventory.gpus:
            holder = _holder(entries, uuid=gpu.uuid)
            state = f"not offered: {gpu.unfit}" if gpu.unfit else "free"
            if holder is not None:
                state = f"held by {holder.owner or holder.pid}" + (f" ({state})" if gpu.unfit else "")
            node = "" if gpu.numa_node is None else str(gpu.numa_node)
            memory = f"{gpu.memory_bytes >> 30} GiB" if gpu.memory_bytes else ""
            cells = (str(gpu.index), gpu.name, memory, node, "; ".join((state, *gpu.notes)), gpu.uuid)
            table.add_row(*map(Text, cells))
        console.print(table)
        for driver in sorted(drivers):
            console.print(driver)
    free = [core for core in inventory.cores if _holder(entries, cpus=core.cpus) is None]
    cpus = cpu_list([cpu for core in inventory.cores for cpu in core.cpus])
    console.print(Text(f"cores  {len(inventory.cores)} (CPUs {cpus}), {len(free)} free"), soft_wrap=True)
    if not entries:
        console.print("nobody holds devices, nobody waits")
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("", "owner", "process", "asked for", "since", "has"):
        table.add_column(heading, overflow="fold")
    for entry in entries:
        table.add_row(*map(Text, _row(entry)))
    console.print()
    console.print(table)


def _row(entry: LeaseStatus) -> tuple[str, ...]:
    import time

    from grader.report.safe_text import one_line
    from grader.run.devices.hardware import cpu_list

    asked = " + ".join(
        f"{num} {what}" for num, what in ((entry.num_gpus, "GPU"), (entry.num_cores, "cores")) if num
    )
    has = " ".join((*entry.gpus, f"CPUs {cpu_list(entry.cpus)}" if entry.cpus else ""))
    if entry.token is not None:
        has += f" (token {entry.token})"
    since = time.strftime("%H:%M:%S", time.localtime(entry.since_unix_s))
    seconds = max(0.0, time.time() - entry.since_unix_s)
    return (
        entry.state,
        one_line(entry.owner),
        str(entry.pid),
        f"{asked}, {entry.wall_s:g} s",
        f"{since} ({seconds:.0f} s)",
        has.strip(),
    )
