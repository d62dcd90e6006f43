# /// attack
# row = "own"
# aim = "Compute in daemons that end before anybody looks, so that the ranks' own clocks stand still."
# runtimes = ["process", "docker"]
# verdicts = ["rejected"]
# min_cpu_s = 2.2
# ///
import os
import time

import honest


def compute_elsewhere():
    """A grandchild that is nobody's child does a tenth of a second of work."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            honest.burn(0.1)
        os._exit(0)
    os.waitpid(child, 0)


for _ in range(12):
    compute_elsewhere()
    time.sleep(0.12)
