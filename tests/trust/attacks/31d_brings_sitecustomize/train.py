# /// attack
# row = "31"
# aim = "Bring modules that Python imports by itself when it starts."
# runtimes = ["process", "docker"]
# verdicts = ["rejected"]
# must_print = ["an ordinary script"]
# ///
print("an ordinary script", flush=True)
