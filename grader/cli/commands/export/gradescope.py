"""Make the autograder archive of a task that a Gradescope assignment takes.

It holds this grader, the task without its solutions, `setup.sh` and `run_autograder`. Scripts run there on one machine
without GPUs, in one container with what judges them, so that who wants to can read the hidden data; time targets are
left out, as the platform's processors are shared. Everything else is judged as everywhere.
"""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "gradescope"
ORDER = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader export gradescope`."""
    parser.add_argument("task", metavar="TASK", help="name of a task, see `grader tasks`")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the archive; default: TASK-gradescope.zip here"
    )
    parser.add_argument("--profile", metavar="NAME", help="profile; default: $GRADER_PROFILE or cpu")
    parser.add_argument("--dataset", metavar="NAME", help="data set; default: the task's first")


def run(args: argparse.Namespace) -> int:
    """Write the archive, and say what to set on the platform."""
    from grader.autograders.gradescope import profile_there, write_archive
    from grader.catalog.data.own_datasets import needs_source
    from grader.catalog.tasks.task_folders import load_task
    from grader.cli.files_to_write import make_folder_for
    from grader.cli.printing import emit_json
    from grader.errors import EXIT_ACCEPTED, UsageError
    from grader.settings import settings

    task = load_task(args.task)
    profile = profile_there(task, args.profile or settings().profile)
    dataset = args.dataset or (profile.datasets or task.datasets)[0]
    if dataset not in task.datasets:
        raise UsageError(
            f"The task {task.name} has no data set {dataset!r}; it has {', '.join(task.datasets)}."
        )
    if needs_source(task):
        raise UsageError(
            f"The data of {task.name} is made from what a site gives, and the archive takes along the task's folder "
            "alone: put that there, and make the data from it by a script of the task's (`prepare` in [data])."
        )
    out = args.out or Path(f"{task.name}-gradescope.zip")
    make_folder_for(out, "--out")
    write_archive(task, profile, dataset, out)
    # A supervisor and a scorer run beside the ranks.
    memory_mib = (profile.limits.memory_bytes >> 20) + 1024
    minutes = round(profile.limits.wall_s / 60 + 3)
    if args.json:
        needs = {"cores": profile.nproc_per_node, "memory_mib": memory_mib, "minutes": minutes}
        emit_json({"schema": 1, "task": task.name, "archive": str(out), "dataset": dataset, "needs": needs})
        return EXIT_ACCEPTED
    print(f"{out}  {out.stat().st_size / 1e6:.1f} MB")
    print(
        "\nGradescope: a programming assignment of 100 points, Configure Autograder, this file, Ubuntu 22.04 or later."
        f"\nIn its settings: at least {profile.nproc_per_node} CPUs, {memory_mib / 1024:.0f} GB of memory and "
        f"{minutes} minutes. Then run it on a solution with Test Autograder."
    )
    return EXIT_ACCEPTED
