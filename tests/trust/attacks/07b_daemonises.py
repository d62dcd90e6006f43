# /// attack
# row = "7"
# aim = "Leave a daemon with a session of its own behind, and end well."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# endings = ["completed"]
# wall_s = 20
# ///
import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(3, 100):
            try:
                os.close(number)
            except OSError:
                pass
        while True:
            sum(range(10_000))
            time.sleep(0.001)
    os._exit(0)
os.wait()
