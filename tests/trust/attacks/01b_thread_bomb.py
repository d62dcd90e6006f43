# /// attack
# row = "1"
# aim = "Start threads until nobody can start any more."
# runtimes = ["docker"]
# verdicts = ["crashed", "rejected", "timed_out", "out_of_memory"]
# must_print = ["can't start new thread", "started few"]
# must_not_print = ["started many"]
# wall_s = 8
# ///
import threading
import time

threads = []
try:
    while len(threads) < 100_000:
        threads.append(threading.Thread(target=time.sleep, args=(30,), daemon=True))
        threads[-1].start()
except RuntimeError as error:
    print("ATTACK", error, flush=True)
print("ATTACK started", "few" if len(threads) < 600 else "many", flush=True)
