# /// attack
# row = "6"
# aim = "Sleep for ever, in a thread that joins another."
# runtimes = ["docker"]
# verdicts = ["timed_out"]
# endings = ["timed_out"]
# wall_s = 3
# ///
import threading
import time

thread = threading.Thread(target=time.sleep, args=(1e6,))
thread.start()
thread.join()
