"""Build, list or remove the images that containers are started from.

`build` makes what is not there yet and is done at once otherwise, with `--apptainer` the image files of that runtime,
too; `list` says what there is and how large; `remove --old` removes images of earlier versions (the engine's own build
cache stays: `docker builder prune` empties that).
"""

from __future__ import annotations

import argparse
import sys

NAME = "images"
ORDER = 66


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader images`."""
    parser.add_argument("action", choices=("build", "list", "remove"), help="what to do")
    parser.add_argument(
        "--offline",
        action="store_true",
        help="build: make the base from Debian's packages, not from a registry",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="build: take the base anew, for its security updates",
    )
    parser.add_argument("--base", metavar="IMAGE", help="build: base image to build upon")
    parser.add_argument(
        "--only",
        metavar="KIND",
        action="append",
        help="train, evaluate, service, redis or postgres; may be given several times",
    )
    parser.add_argument(
        "--apptainer",
        action="store_true",
        help="build: then convert what grading needs into image files for the apptainer runtime; "
        "remove: those files alone",
    )
    parser.add_argument("--old", action="store_true", help="remove: images of earlier versions")


def run(args: argparse.Namespace) -> int:
    """Do one of the three; 0 when it is done."""
    from grader.cli.image_printing import print_images, print_removed
    from grader.errors import EXIT_ACCEPTED, UsageError
    from grader.run.apptainer import image_files
    from grader.run.images import KINDS, image_states, on_disk_bytes, remove_old

    kinds = tuple(args.only or KINDS)
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError(f"there is no image `{kind}`; there are {', '.join(KINDS)}")
    if args.offline and args.base:
        raise UsageError("--offline makes the base itself; leave --base out")
    if args.action == "remove":
        if not args.old:
            raise UsageError("say --old: `grader images remove` only removes images of earlier versions")
        removed, kept = ((), ()) if args.apptainer else remove_old(kinds) if args.only else remove_old()
        print_removed((*removed, *image_files.remove_old()), kept, as_json=args.json)
        return EXIT_ACCEPTED
    if args.action == "build":
        from grader.run.image_build import build

        def print_line(line: str) -> None:
            print(line, file=sys.stderr, flush=True)

        if args.apptainer:
            # Said before an hour of building, not after it.
            image_files.needs_program()
        build(kinds, print_line, base=args.base, offline=args.offline, fresh=args.fresh)
        if args.apptainer:
            for file in image_files.build(kinds, print_line):
                print_line(f"apptainer: {file}")
    # Of all, so that what one shares with another is told whichever is asked for.
    states = [state for state in image_states() if state.kind in kinds]
    print_images(states, on_disk_bytes(kinds), as_json=args.json)
    return EXIT_ACCEPTED
