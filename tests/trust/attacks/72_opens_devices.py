# /// attack
# row = "own"
# aim = "Open, list and make devices."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# must_print = ["\"reached\": []"]
# must_not_print = ["\"reached\": [\""]
# ///
import json
import os
import stat

HARMLESS = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "stdin", "stdout", "stderr", "fd", "shm", "core", "console"}
reached = []
for folder, folders, names in os.walk("/dev"):
    if folder in ("/dev/shm", "/dev/pts", "/dev/mqueue"):
        folders.clear()
        continue
    for name in names:
        path = os.path.join(folder, name)
        if name in HARMLESS or name.startswith("nvidia"):
            continue
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            reached.append(path)
        except OSError:
            pass
for kind, numbers in ((stat.S_IFCHR, ((1, 1), (1, 3), (1, 11), (5, 0), (10, 200), (10, 229))), (stat.S_IFBLK, ((254, 0), (8, 0), (7, 0), (252, 0)))):
    for major, minor in numbers:
        for place in ("/tmp", os.environ["HOME"], "/dev/shm", os.environ["OUTPUT_DIR"]):
            path = os.path.join(place, f"grader-trust-device{os.getpid()}")
            try:
                os.mknod(path, kind | 0o666, os.makedev(major, minor))
                reached.append(f"made {major}:{minor} in {place}")
                os.remove(path)
            except OSError:
                pass
print("ATTACK", json.dumps({"reached": reached}), flush=True)
