# /// attack
# row = "10"
# aim = "Ask the kernel for what a training script has no use for."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# must_print = ["'CapEff': '0000000000000000'", "'CapPrm': '0000000000000000'", "'CapAmb': '0000000000000000'", "'NoNewPrivs': '1'", "'Seccomp': '2'", "\"reached\": []"]
# must_not_print = ["\"reached\": [\""]
# ///
import ctypes
import errno
import json
import platform
import socket

libc = ctypes.CDLL(None, use_errno=True)
if platform.machine() == "x86_64":
    numbers = {
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "ptrace": 101, "process_vm_readv": 310,
        "process_vm_writev": 311, "kcmp": 312, "add_key": 248, "request_key": 249, "keyctl": 250, "userfaultfd": 323,
        "bpf": 321, "perf_event_open": 298, "mount": 165, "umount2": 166, "pivot_root": 155, "move_mount": 429,
        "open_tree": 428, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442,
        "chroot": 161, "unshare": 272, "setns": 308, "kexec_load": 246, "kexec_file_load": 320, "init_module": 175,
        "finit_module": 313, "delete_module": 176, "quotactl": 179, "swapon": 167, "swapoff": 168, "reboot": 169,
        "settimeofday": 164, "clock_settime": 227, "adjtimex": 159, "clock_adjtime": 305, "name_to_handle_at": 303,
        "open_by_handle_at": 304, "lookup_dcookie": 212, "vmsplice": 278, "fanotify_init": 300, "fanotify_mark": 301,
        "pidfd_getfd": 438, "process_madvise": 440, "process_mrelease": 448, "move_pages": 279, "migrate_pages": 256,
        "mbind": 237, "set_mempolicy": 238, "seccomp": 317, "landlock_create_ruleset": 444, "memfd_secret": 447,
        "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240, "io_setup": 206, "acct": 163, "syslog": 103,
        "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173, "modify_ldt": 154, "uselib": 134,
        "ustat": 136, "sysfs": 139, "vhangup": 153, "remap_file_pages": 216,
    }
    calls = {name: (number, 0, 0, 0, 0, 0, 0) for name, number in numbers.items()}
    calls["clone into a user namespace"] = (56, 0x10000000 | 17, 0, 0, 0, 0)
    calls["clone into a mount namespace, high bits set"] = (56, (1 << 40) | 0x20000 | 17, 0, 0, 0, 0)
    calls["personality without address randomisation"] = (135, 0x0040000)
    calls["mknod of a device"] = (133, ctypes.create_string_buffer(b"/tmp/grader-trust-device"), 0o020600, 0x0103)
    calls["mknodat of a device"] = (259, -100, ctypes.create_string_buffer(b"/tmp/grader-trust-device"), 0o060600, 0x0800)
    calls["AF_ALG in high bits"] = (41, (1 << 33) | 38, 5, 0)
else:
    calls = {}
reached = []
for name, arguments in calls.items():
    ctypes.set_errno(0)
    done = libc.syscall(*(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    if done != -1 or ctypes.get_errno() != errno.EPERM:
        reached.append(f"{name}: {done} {errno.errorcode.get(ctypes.get_errno())}")
if calls and (libc.syscall(435, 0, 0), ctypes.get_errno()) != (-1, errno.ENOSYS):
    reached.append("clone3")
families = {"AF_ALG": 38, "AF_VSOCK": 40, "AF_PACKET": 17, "AF_BLUETOOTH": 31, "AF_CAN": 29, "AF_TIPC": 30, "AF_KEY": 15, "AF_XDP": 44, "AF_RDS": 21}
asked = [(name, number, socket.SOCK_RAW, 0) for name, number in families.items()]
asked += [("SCTP", 2, socket.SOCK_STREAM, 132), ("MPTCP", 2, socket.SOCK_STREAM, 262), ("ping", 2, socket.SOCK_DGRAM, 1)]
asked += [("raw IP", 2, socket.SOCK_RAW, 255), ("NETLINK_NETFILTER", 16, socket.SOCK_RAW, 12), ("NETLINK_AUDIT", 16, socket.SOCK_RAW, 9)]
for name, family, kind, protocol in asked:
    try:
        socket.socket(family, kind, protocol).close()
        reached.append(name)
    except PermissionError:
        pass
    except OSError as error:
        reached.append(f"{name}: {error}")
with open("/proc/self/status") as file:
    status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
print("ATTACK", {name: status[name].strip() for name in ("CapEff", "CapPrm", "CapInh", "CapAmb", "NoNewPrivs", "Seccomp")})
print("ATTACK", len(calls), json.dumps({"reached": reached}), flush=True)
