# /// attack
# row = "7"
# aim = "Let every child that is ended be started again by another."
# runtimes = ["process", "docker"]
# verdicts = ["rejected", "timed_out", "crashed"]
# wall_s = 10
# ///
import os
import signal
import time


def keep_alive():
    """A pair: whoever loses its twin forks another."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        try:
            child = os.fork()
        except OSError:
            time.sleep(0.01)
            continue
        if child == 0:
            parent = os.getppid()
            while os.getppid() == parent:
                time.sleep(0.005)
            continue
        os.waitpid(child, 0)


if os.fork() == 0:
    keep_alive()
time.sleep(0.3)
