"""Prepare the data sets that tasks use, or list them."""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "data"
ORDER = 65


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader data`."""
    parser.add_argument("action", choices=("prepare", "list"), help="what to do")
    parser.add_argument(
        "dataset", metavar="DATASET", nargs="?", help="name of a data set, see `grader data list`"
    )
    parser.add_argument(
        "--from", dest="source", type=Path, metavar="DIR", help="local folder in the data set's own layout"
    )


def run(args: argparse.Namespace) -> int:
    """Prepare one data set, or list all."""
    from grader.catalog.datasets import dataset_names, prepare, prepared
    from grader.cli.printing import print_datasets
    from grader.errors import EXIT_ACCEPTED, UsageError

    if args.action == "prepare":
        if args.dataset is None:
            raise UsageError(f"name the data set to prepare: {', '.join(dataset_names())}")
        print_datasets([prepare(args.dataset, args.source)], as_json=args.json)
    else:
        print_datasets([prepared(name) for name in dataset_names()], as_json=args.json, names=dataset_names())
    return EXIT_ACCEPTED
