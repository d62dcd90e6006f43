# /// attack
# row = "31"
# aim = "Let time stand still, for everybody who asks Python."
# runtimes = ["docker"]
# verdicts = ["accepted"]
# harmless = "it trained, and what counts as its time is the kernel's"
# min_cpu_s = 1.0
# ///
import time

for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
    setattr(time, name, lambda: 0.0)
    setattr(time, f"{name}_ns", lambda: 0)
time.sleep = lambda seconds: None

import honest  # noqa: E402

honest.main()
