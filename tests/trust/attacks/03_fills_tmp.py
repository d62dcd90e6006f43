# /// attack
# row = "3"
# aim = "Fill /tmp and the caches by bytes and by names."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# must_print = ["ATTACK bytes No space left on device", "ATTACK names No space left on device"]
# must_not_print = ["room for all"]
# ///
import os
import tempfile

for folder in dict.fromkeys(("/tmp", tempfile.gettempdir(), os.environ["HOME"])):
    place = os.path.join(folder, "grader-trust-fill")
    try:
        os.makedirs(place, exist_ok=True)
    except OSError as error:  # the other rank has left no room for a name
        print("ATTACK names", error.strerror)
        continue
    total = count = 0
    try:
        with open(os.path.join(place, f"big{os.getpid()}"), "wb") as file:
            while total < 2 << 30:
                total += file.write(b"x" * (4 << 20))
    except OSError as error:
        print("ATTACK bytes", error.strerror)
    os.remove(os.path.join(place, f"big{os.getpid()}"))
    try:
        while count < 300_000:
            open(os.path.join(place, f"{os.getpid()}-{count}"), "w").close()
            count += 1
    except OSError as error:
        print("ATTACK names", error.strerror)
    print("ATTACK", "room for all" if total >= 2 << 30 or count >= 300_000 else "full", flush=True)
