# /// attack
# row = "own"
# aim = "Fill the file that stack dumps go to: memory that no process owns."
# runtimes = ["docker"]
# verdicts = ["held", "out_of_memory", "rejected", "timed_out", "crashed"]
# wall_s = 20
# ///
import os
import stat
import time

for descriptor in map(int, os.listdir("/proc/self/fd")):
    try:
        if descriptor > 2 and stat.S_ISREG(os.fstat(descriptor).st_mode):
            total = 0
            while total < 1 << 30:
                total += os.write(descriptor, b"x" * (16 << 20))
    except OSError as error:
        print(descriptor, error, flush=True)
time.sleep(0.5)
