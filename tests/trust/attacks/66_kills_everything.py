# /// attack
# row = "own"
# aim = "Kill every process that it may."
# runtimes = ["docker"]
# verdicts = ["crashed", "rejected"]
# ///
import os
import signal
import time

time.sleep(0.5 * int(os.environ["RANK"]))
os.kill(-1, signal.SIGSTOP)
os.kill(-1, signal.SIGKILL)
