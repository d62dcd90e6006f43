# /// attack
# row = "own"
# aim = "Read events out of the probe's pipe before the supervisor does."
# runtimes = ["docker"]
# verdicts = ["held", "rejected", "deadlocked", "crashed"]
# ///
import ctypes
import os
import stat
import threading

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


ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE
reader = os.open(f"/proc/self/fd/{pipe()}", os.O_RDONLY)


def eat():
    """Whatever comes is gone."""
    while os.read(reader, 1 << 16):
        pass


threading.Thread(target=eat, daemon=True).start()
honest.main(epochs=3)
