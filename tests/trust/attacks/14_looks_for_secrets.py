# /// attack
# row = "14"
# aim = "Find tokens, addresses of services, other learners' files."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# must_print = ["\"reached\": []"]
# must_not_print = ["\"reached\": [\""]
# ///
import json
import os
import re

KNOWN = {
    "CUDA_VISIBLE_DEVICES", "DATA_DIR", "GLOO_SOCKET_IFNAME", "GROUP_RANK", "GROUP_WORLD_SIZE", "HIP_VISIBLE_DEVICES", "HOME", "LANG", "LC_CTYPE", "LD_LIBRARY_PATH",
    "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "MPLCONFIGDIR", "NCCL_SOCKET_IFNAME",
    "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "OUTPUT_DIR", "PATH",
    "PYTORCH_NVML_BASED_CUDA_CHECK", "RANK", "ROCR_VISIBLE_DEVICES", "ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING", "TRITON_CACHE_DIR", "USER", "WORLD_SIZE",
}
reached = [name for name in os.environ if name not in KNOWN and not name.startswith("TORCHELASTIC_")]
reached += [name for name, value in os.environ.items() if re.search(r"redis|amqp|postgres|token|secret|passw|https?:", value, re.IGNORECASE)]
own = {str(os.getpid()), "self", "thread-self"}
for pid in filter(str.isdigit, os.listdir("/proc")):
    if pid in own:
        continue
    for name in ("environ", "mem", "maps", "fd", "root", "cwd", "io", "stack", "syscall", "exe", "map_files"):
        path = f"/proc/{pid}/{name}"
        try:
            if name in ("root", "cwd", "exe"):
                os.readlink(path)
            elif name in ("fd", "map_files"):
                os.listdir(path)
            else:
                with open(path, "rb") as file:
                    if not file.read(1):
                        continue
            reached.append(path)
        except OSError:
            pass
for path in ("/run/secrets", "/var/run/secrets", "/var/lib/docker", "/record", "/hidden", "/etc/shadow", "/root", "/etc/ssh", "/.dockerenv.secret"):
    try:
        reached += [os.path.join(path, name) for name in os.listdir(path)] if os.path.isdir(path) else [open(path).name]
    except OSError:
        pass
print("ATTACK", json.dumps({"reached": reached}), flush=True)
