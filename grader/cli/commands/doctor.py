"""Say what this machine can run, what is missing, and how to get it."""

from __future__ import annotations

import argparse

NAME = "doctor"
ORDER = 70


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader doctor`."""
    parser.add_argument(
        "--gpu",
        action="store_true",
        help="run jobs on this host's GPUs, as submissions are run, and say what came of them (minutes)",
    )
    parser.add_argument(
        "--runtime", metavar="NAME", help="where these jobs run; default: $GRADER_RUNTIME or process"
    )


def run(args: argparse.Namespace) -> int:
    """Print the findings; 4 when nothing can be judged here."""
    from grader.cli.printing import print_diagnoses
    from grader.doctor import diagnose
    from grader.errors import EXIT_ACCEPTED, EXIT_INFRA_ERROR, UsageError

    if args.gpu:
        return _try_gpus(args)
    if args.runtime:
        raise UsageError("--runtime says where the jobs of --gpu run; without them give neither")
    diagnoses = diagnose()
    print_diagnoses(diagnoses, as_json=args.json)
    return EXIT_ACCEPTED if all(d.ok or not d.needed for d in diagnoses) else EXIT_INFRA_ERROR


def _try_gpus(args: argparse.Namespace) -> int:
    import json
    import sys

    from grader.cli.live import LiveView
    from grader.cli.printing import emit_json, print_diagnoses
    from grader.errors import EXIT_ACCEPTED, EXIT_INFRA_ERROR
    from grader.files import write_whole
    from grader.gpu_trials.trial_runs import try_gpus
    from grader.settings import settings

    with LiveView(sys.stderr) as view:
        report = try_gpus(args.runtime or settings().runtime, view.progress)
    path = settings().state_dir / "gpu-trials.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(report.facts, indent=2))
    if args.json:
        emit_json(report.facts)
    else:
        print_diagnoses(report.checkups, as_json=False)
        print(f"All that was seen: {path}. Where something failed, send it along when you ask for help.")
    return EXIT_ACCEPTED if all(one.ok or not one.needed for one in report.checkups) else EXIT_INFRA_ERROR
