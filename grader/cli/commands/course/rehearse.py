"""Play a deadline before it comes: how long learners will wait, and when the last grade is there.

Everybody hands in during the window, most of them late; scripts that fail are handed in again. People, scripts and
running times are invented, and so is the clock; the store, its queue, its limits and whose turn it is are the real
ones, in a database of its own that is thrown away. Ends with 1 where somebody has no grade at the end of the window,
or the last grade comes more than five minutes after it.
"""

from __future__ import annotations

import argparse
import re

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
    parser.add_argument("--learners", type=int, default=60, metavar="N", help="people in the room (60)")
    parser.add_argument(
        "--window", type=_seconds, default=1800.0, metavar="TIME", help="until it is due (30m)"
    )
    parser.add_argument("--gpus", type=int, default=4, metavar="N", help="GPUs of the one worker host (4)")
    parser.add_argument("--need", type=int, default=2, metavar="N", help="GPUs that one attempt needs (2)")
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

    if args.learners < 1 or args.regrades < 0 or not 1 <= args.need <= args.gpus:
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
        need=args.need,
        failing=args.failing,
        durations=durations,
        num_regrades=args.regrades,
        seed=args.seed,
    )
    played = rehearse(scenario)
    if args.json:
        emit_json(to_json(played))
    else:
        print_rehearsal(played)
    return EXIT_ACCEPTED if played.met else EXIT_NOT_ACCEPTED
