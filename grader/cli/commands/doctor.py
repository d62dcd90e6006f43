"""Say what this machine can run, what is missing, and how to get it."""

from __future__ import annotations

import argparse

NAME = "doctor"
ORDER = 70


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`grader doctor` takes no arguments of its own."""


def run(args: argparse.Namespace) -> int:
    """Print the findings; 4 when nothing can be judged here."""
    from grader.cli.printing import print_diagnoses
    from grader.doctor import diagnose
    from grader.errors import EXIT_ACCEPTED, EXIT_INFRA_ERROR

    diagnoses = diagnose()
    print_diagnoses(diagnoses, as_json=args.json)
    return EXIT_ACCEPTED if all(d.ok or not d.needed for d in diagnoses) else EXIT_INFRA_ERROR
