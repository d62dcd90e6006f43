"""Prepare the data sets that tasks use, or list them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.model.dataset import PreparedDataset

NAME = "data"
ORDER = 65


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader data`."""
    parser.add_argument("action", choices=("prepare", "list"), help="what to do")
    parser.add_argument(
        "dataset",
        metavar="DATASET",
        nargs="?",
        help="name of a data set, see `grader data list`, or of a task that brings its data along",
    )
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="PATH",
        help="local file or folder to take it from: what the task asks for, or, for images, FashionMNIST's own files, "
        "a folder for each class, NumPy arrays or a CSV of pixels",
    )


def run(args: argparse.Namespace) -> int:
    """Prepare one data set, or list all."""
    from grader.catalog.data import own_datasets
    from grader.catalog.data.datasets import data_command, dataset_names, prepared
    from grader.catalog.tasks.task_folders import tasks_with_own_data
    from grader.cli.printing import print_datasets
    from grader.errors import EXIT_ACCEPTED, UsageError

    if args.action == "prepare":
        if args.dataset is None:
            own = [task.name for task in tasks_with_own_data()]
            raise UsageError(f"name the data set to prepare: {', '.join((*dataset_names(), *own))}")
        print_datasets([_prepare(args.dataset, args.source)], as_json=args.json)
    else:
        found = {name: (prepared(name), data_command(name)) for name in dataset_names()}
        for task in tasks_with_own_data():
            found[task.datasets[0]] = own_datasets.prepared(task), own_datasets.own_command(task)
        print_datasets(
            [dataset for dataset, _ in found.values()],
            as_json=args.json,
            names=tuple(found),
            commands=[command for _, command in found.values()],
        )
    return EXIT_ACCEPTED


def _prepare(name: str, source: Path | None) -> PreparedDataset:
    from grader.catalog.data import own_datasets
    from grader.catalog.data.datasets import dataset_names, prepare
    from grader.catalog.tasks.task_folders import find_tasks, load_task, tasks_with_own_data
    from grader.errors import UsageError

    if name in dataset_names():
        return prepare(name, source)
    # Loaded by its name, a task with mistakes says what they are.
    named = [load_task(name)] if name in find_tasks() else []
    own = [task for task in (*named, *tasks_with_own_data()) if task.own_data is not None]
    task = next((t for t in own if name in (t.name, *t.datasets)), None)
    if task is not None:
        return own_datasets.prepare(task, source)
    if named:
        sets = ", ".join(named[0].datasets)
        raise UsageError(f"The task {name} brings no data along. It is judged on {sets}; prepare that.")
    known = ", ".join((*dataset_names(), *(t.name for t in own)))
    raise UsageError(f"There is no data set {name!r}. There are: {known}.")
