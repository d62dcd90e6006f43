# /// attack
# row = "11"
# aim = "Become another user: setuid programs, ids, files of the kernel."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# must_print = ["\"reached\": []"]
# must_not_print = ["\"reached\": [\""]
# wall_s = 60
# ///
import json
import os
import stat
import subprocess

reached = []
for change in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setresuid(20001, 20001, 20001), lambda: os.setgroups([0])):
    try:
        change()
        reached.append(f"uid {os.getresuid()} gid {os.getresgid()}")
    except OSError:
        pass
for folder, _folders, names in os.walk("/usr" if os.environ["RANK"] == "0" else "/usr/bin"):
    for name in names:
        path = os.path.join(folder, name)
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            continue
        if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
            try:
                subprocess.run([path, "--help"], timeout=2, capture_output=True, stdin=subprocess.DEVNULL, check=False)
            except (OSError, subprocess.TimeoutExpired):
                pass
for command in (["su", "-c", "id -u"], ["unshare", "-Ur", "id", "-u"], ["mount", "-t", "tmpfs", "none", "/tmp"], ["chroot", "/", "id"], ["nsenter", "-t", "1", "-m", "id"]):
    try:
        done = subprocess.run(command, timeout=5, capture_output=True, stdin=subprocess.DEVNULL, text=True, check=False)
        if done.returncode == 0:
            reached.append(" ".join(command))
    except (OSError, subprocess.TimeoutExpired):
        pass
for path in (
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/proc/self/oom_score_adj_of_others",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/pids/pids.max", "/sys/fs/cgroup/release_agent",
    "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/cgroup.procs", "/sys/kernel/uevent_helper", "/proc/kcore", "/dev/kmsg", "/dev/mem",
    "/proc/self/uid_map", "/proc/self/setgroups", "/proc/1/oom_score_adj",
):
    try:
        with open(path, "r+b"):
            reached.append(path)
    except OSError:
        pass
try:
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("-1000")
    reached.append("oom_score_adj")
except OSError:
    pass
print("ATTACK", json.dumps({"reached": reached}), flush=True)
