"""The option of commands that judge many submissions: how many of them side by side."""

from __future__ import annotations

import argparse


def add_jobs_argument(parser: argparse.ArgumentParser) -> None:
    """`--jobs N`; whether it is a number of jobs is for `grader.promises.parallel_pipelines.check_jobs` to say."""
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        metavar="N",
        help="judge N side by side; those that a time target decides about are still judged alone",
    )
