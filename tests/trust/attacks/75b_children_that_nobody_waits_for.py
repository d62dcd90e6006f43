# /// attack
# row = "own"
# aim = "Compute in children whose end nobody is told of, so that no parent is charged with their time."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# min_cpu_s = 2.3
# ///
import os
import signal
import time

import honest

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(10):
    if os.fork() == 0:
        honest.burn(0.12)
        os._exit(0)
    time.sleep(0.15)
