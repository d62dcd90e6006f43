# /// attack
# row = "own"
# aim = "Watch the probe with settrace, setprofile and audit hooks, and raise inside it."
# runtimes = ["docker"]
# verdicts = ["accepted", "held", "rejected", "crashed"]
# harmless = "it trained; a hook that failed says so, and what it could not see is not given"
# codes = ["TRUST001"]
# wall_s = 120
# ///
import sys

seen = []


def watch(frame, event, argument):
    """Raise wherever the probe runs."""
    if "probe" in frame.f_code.co_filename and len(seen) < 50:
        seen.append(frame.f_code.co_name)
        raise RuntimeError("no probe here")
    return None


sys.setprofile(watch)
sys.settrace(watch)
sys.addaudithook(lambda event, arguments: None)

import honest  # noqa: E402

honest.main()
