"""`make fuzz`: every fuzzer for some minutes, each time from another seed, which is told when something is found."""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import time
import warnings

from hypothesis import HealthCheck, given, seed, settings

from tests.untrusted.fuzzers import FUZZERS

_EXAMPLES = 500


def main() -> int:
    """Fuzz; 1 where anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.untrusted", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(FUZZERS)}; all where none is given")
    parser.add_argument("--minutes", type=float, default=10.0, help="for each")
    parser.add_argument("--seed", type=int, default=None, help="of the first round")
    args = parser.parse_args()
    warnings.simplefilter("error")
    found = [name for name in args.names or FUZZERS if not _fuzz(name, args.minutes * 60, args.seed)]
    return 1 if found else 0


def _fuzz(name: str, seconds: float, first: int | None) -> bool:
    fuzzer, rounds, began = FUZZERS[name], 0, time.monotonic()
    number = random.SystemRandom().randrange(1 << 32) if first is None else first
    start = number
    while time.monotonic() - began < seconds:

        @seed(number)
        @settings(
            max_examples=_EXAMPLES,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        )
        @given(fuzzer.drawn)
        def run(drawn: object) -> None:
            with contextlib.suppress(*fuzzer.may_raise):
                fuzzer.read(drawn)

        try:
            run()
        except Exception as error:  # noqa: BLE001  whatever it is, it is what was looked for
            print(
                f"{name}: seed {number}: {type(error).__name__}: {error}",
                *getattr(error, "__notes__", ()),
                sep="\n  ",
            )
            return False
        rounds, number = rounds + 1, number + 1
    took = time.monotonic() - began
    print(
        f"{name}: nothing in {rounds * _EXAMPLES:,} examples, {took:.0f} s, seeds {start} to {number - 1}",
        flush=True,
    )
    return True


if __name__ == "__main__":
    sys.exit(main())
