"""Play a deadline before it comes: how long learners will wait, and when the last grade is there.

Everybody hands in during the window, most of them late; scripts that fail are handed in again. People, scripts and
running times are invented, and so is the clock; the store, its queue, its limits and whose turn it is are the real
ones, in a database of its own that is thrown away. With a course file, it is the deadline of one of its tasks: what an
attempt needs and how many each learner has are read there. Ends with 1 where somebody has no grade at the end of the
window, or the last grade comes more than five minutes after it.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

NAME = "rehearse"
ORDER = 20
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(text: str) -> float:
    """A span of time: `90`, `90s`, `30m`, `1.5h`.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip())
    if match is None or float(match[1]) <= 0:
        raise argparse.ArgumentTypeError(f"`{text}` is no span of time; write 90s, 30m or 1h")
    return float(match[1]) * _UNITS[match[2] or "s"]


def _share(text: str) -> float:
    """A share: `55%` or `0.55`.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text.strip())
    value = float(match[1]) / (100 if match[2] else 1) if match else -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is no share below one; write 55% or 0.55")
    return value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader course rehearse`."""
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        type=Path,
        help="course file, or a course's name; default: an invented task",
    )
    parser.add_argument(
        "--task",
        metavar="NAME",
        help="task of the course whose deadline is played; default: the one due last",
    )
    parser.add_argument("--learners", type=int, default=60, metavar="N", help="people in the room (60)")
    parser.add_argument(
        "--window", type=_seconds, default=1800.0, metavar="TIME", help="until it is due (30m)"
    )
    parser.add_argument(
        "--gpus",
        type=int,
        default=4,
        metavar="N",
        help="GPUs of the one worker host, or slots without GPUs (4)",
    )
    parser.add_argument(
        "--need", type=int, metavar="N", help="GPUs that one attempt needs; default: the task's, or 2"
    )
    parser.add_argument(
        "--failing", type=_share, default=0.55, metavar="SHARE", help="of the attempts that fail (55%%)"
    )
    parser.add_argument(
        "--whole", type=_seconds, default=40.0, metavar="TIME", help="how long a whole attempt takes (40s)"
    )
    parser.add_argument(
        "--gate",
        type=_seconds,
        default=8.0,
        metavar="TIME",
        help="how soon a failing one is ended, its GPUs held meanwhile (8s)",
    )
    parser.add_argument(
        "--recorded",
        metavar="TASK",
        help="take running times from this site's own attempts at a task instead of --whole and --gate",
    )
    parser.add_argument(
        "--regrades", type=int, default=20, metavar="N", help="regrades that wait in the background (20)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="another room, other scripts (0)")


def run(args: argparse.Namespace) -> int:
    """Play, print, and return 0 when everybody is served in time."""
    from grader.cli.printing import emit_json
    from grader.cli.rehearsal_printing import print_rehearsal, to_json
    from grader.errors import EXIT_ACCEPTED, EXIT_NOT_ACCEPTED, UsageError
    from grader.rehearsal import Durations, Scenario, recorded, rehearse

    told = _of_course(args.file, args.task) if args.file is not None or args.task is not None else {"need": 2}
    told |= {"need": args.need} if args.need is not None else {}
    if args.learners < 1 or args.regrades < 0 or not 1 <= told["need"] <= args.gpus:
        raise UsageError(
            "a rehearsal needs a learner, and a host with at least the GPUs that one attempt needs"
        )
    durations = Durations.assumed(args.whole, args.gate)
    if args.recorded is not None:
        durations = recorded(args.recorded)
    scenario = Scenario(
        num_learners=args.learners,
        window_s=args.window,
        num_gpus=args.gpus,
        failing=args.failing,
        durations=durations,
        num_regrades=args.regrades,
        seed=args.seed,
        **told,
    )
    played = rehearse(scenario)
    if args.json:
        emit_json(to_json(played))
    else:
        print_rehearsal(played)
    return EXIT_ACCEPTED if played.met else EXIT_NOT_ACCEPTED


def _of_course(file: Path | None, name: str | None) -> dict[str, Any]:
    """What a course says of one of its tasks, as fields of a `Scenario`; None: its `course.toml`, and what is due last.

    Raises:
        UsageError: the course has no such task.
    """
    from grader.catalog.courses.course_file import load_course
    from grader.catalog.tasks.task_folders import load_task
    from grader.errors import UsageError

    course = load_course(file)
    dated = sorted((item for item in course.items if item.due), key=lambda item: item.due or item.opens)
    item = course.item(name) if name is not None else (*course.items, *dated)[-1]
    if item is None:
        raise UsageError(
            f"{course.name} has no task {name!r}; it has {', '.join(i.task for i in course.items)}"
        )
    profile = load_task(item.task).profile(item.profile)
    on_gpus = profile is not None and profile.backend == "nccl"
    return {
        "task": item.task,
        "need": profile.nproc_per_node * profile.nnodes if profile is not None and on_gpus else 1,
        "places": "GPUs" if on_gpus else "slots",
        "max_per_day": item.max_per_day,
        "max_total": item.max_total,
    }
