# /// attack
# row = "own"
# aim = "Unregister faulthandler and close its file, then wait for ever."
# runtimes = ["docker"]
# verdicts = ["timed_out", "deadlocked"]
# wall_s = 3
# ///
import faulthandler
import os
import signal
import time

for number in range(32, signal.SIGRTMAX + 1):
    try:
        faulthandler.unregister(number)
    except (ValueError, OSError):
        pass
faulthandler.disable()
os.closerange(1000, 1010)
while True:
    time.sleep(1)
