# /// attack
# row = "own"
# aim = "Outlive the parent's death signal, adopt orphans, take the judge's name, leave the session."
# runtimes = ["process", "docker"]
# verdicts = ["timed_out"]
# wall_s = 3
# ///
import ctypes
import os
import signal
import time

prctl = ctypes.CDLL(None).prctl
prctl(1, 0, 0, 0, 0)  # PR_SET_PDEATHSIG: none
prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
prctl(15, b"python -m judge", 0, 0, 0)  # PR_SET_NAME
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        prctl(1, 0, 0, 0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    time.sleep(0.01)
