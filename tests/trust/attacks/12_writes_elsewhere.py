# /// attack
# row = "12"
# aim = "Change the image, the data, the record: anything outside its own places."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# must_print = ["\"reached\": []"]
# must_not_print = ["\"reached\": [\""]
# ///
import json
import os
import sys

import torch

ALLOWED = [os.path.realpath(p) for p in (os.getcwd(), os.environ["OUTPUT_DIR"], os.environ["HOME"], "/tmp", "/dev/shm", "/dev/mqueue")]
ALLOWED += ["/proc/self", f"/proc/{os.getpid()}", "/proc/thread-self"]
places = {os.path.dirname(torch.__file__), os.path.dirname(os.__file__), os.path.dirname(sys.executable), os.environ["DATA_DIR"], "/record", "/out/..", "/"}
for top in ("/", "/usr", "/usr/local", "/etc", "/var", "/opt", "/srv", "/mnt", "/dev", "/sys", "/run", "/home"):
    try:
        places |= {os.path.join(top, name) for name in os.listdir(top)}
    except OSError:
        pass
reached = []
for place in sorted(places):
    real = os.path.realpath(place)
    if not os.path.isdir(real) or any(real == a or real.startswith(a + "/") for a in ALLOWED) or real.startswith("/proc"):
        continue
    path = os.path.join(real, f"grader-trust-{os.getpid()}")
    try:
        open(path, "w").close()
        os.remove(path)
        reached.append(real)
    except OSError:
        pass
for path in (torch.__file__, sys.executable, "/etc/hosts", "/etc/passwd", "/etc/hostname", "/etc/resolv.conf"):
    try:
        open(path, "r+b").close()
        reached.append(path)
    except OSError:
        pass
for folder, _folders, names in os.walk(os.environ["DATA_DIR"]):
    for name in names:
        path = os.path.join(folder, name)
        try:
            open(path, "r+b").close()
            reached.append(path)
        except OSError:
            pass
        try:
            os.chmod(path, 0o777)
            reached.append(f"chmod {path}")
        except OSError:
            pass
print("ATTACK", json.dumps({"rank": os.environ["RANK"], "reached": reached}), flush=True)
