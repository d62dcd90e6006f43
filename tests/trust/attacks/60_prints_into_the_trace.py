# /// attack
# row = "own"
# aim = "Put the probe's pipe in place of standard output, and print into it."
# runtimes = ["docker"]
# verdicts = ["held", "rejected"]
# ///
import os
import stat
import sys

import honest


def pipe():
    """The descriptor through which this rank is watched."""
    for descriptor in sorted(map(int, os.listdir("/proc/self/fd")), reverse=True):
        try:
            if descriptor > 2 and stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                return descriptor
        except OSError:
            continue
    return None


os.dup2(pipe(), 1)
honest.main(epochs=1)
for _ in range(200):
    print('{"e": "step", "t": 1, "n": 7}\nnot even JSON', flush=True)
sys.stdout.flush()
