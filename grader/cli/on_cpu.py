"""`--on-cpu` of the commands that run submissions."""

from __future__ import annotations

import argparse


def add_on_cpu_argument(parser: argparse.ArgumentParser) -> None:
    """Let a profile be run without the GPUs that it asks for."""
    parser.add_argument(
        "--on-cpu",
        action="store_true",
        help="run a profile that needs GPUs on the CPU, under gloo: what it has learned is judged, time is left out",
    )
