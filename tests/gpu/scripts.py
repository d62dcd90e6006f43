"""Scripts as learners write them, for ranks that share one GPU; `on_cpu` changes the words so that they need none.

What a script finds out it prints last, as one line of JSON.
"""

from __future__ import annotations

SHARING = (
    """
import os
os.environ["NCCL_MULTI_RANK_GPU_ENABLE"] = "1"
""",
    """
import os
os.environ["NCCL_HOSTID"] = os.environ["RANK"]
os.environ["NCCL_SOCKET_IFNAME"] = "lo"
""",
)
"""What lets two ranks share a GPU, the newest NCCL's way first."""

REDUCE = """
import json
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(0)
value = torch.full((1024,), float(dist.get_rank() + 1), device="cuda:0")
dist.all_reduce(value)
print(json.dumps(value[-1].item()), flush=True)
dist.destroy_process_group()
"""

TRAIN = """
import hashlib
import json
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("nccl")
device = torch.device("cuda:0")
torch.cuda.set_device(device)
torch.manual_seed(0)
images, labels = torch.randn(512, 3, 16, 16), torch.randint(0, 10, (512,))
model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 256, 10)
)
model = DistributedDataParallel(model.to(device))
sampler = DistributedSampler(TensorDataset(images, labels))
loader = DataLoader(sampler.dataset, batch_size=32, sampler=sampler)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
losses = []
for epoch in range(3):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x.to(device, non_blocking=True)), y.to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
state = {name: tensor.cpu() for name, tensor in model.module.state_dict().items()}
if dist.get_rank() == 0:
    torch.save(state, os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))
digest = hashlib.sha256()
for name, tensor in model.module.named_parameters():
    digest.update(state[name].numpy().tobytes())
print(json.dumps({"digest": digest.hexdigest(), "losses": torch.stack(losses).tolist()}))
dist.destroy_process_group()
"""
"""DDP over a convolution; says a digest of its final parameters, and its losses."""

SKIPS_ONE = """
import json
import os
import threading
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(0)


def keep():
    c10d = torch._C._distributed_c10d
    # Since it has hooks for it, NCCL's second implementation is the one that is used, and its recorder is a common one.
    hooked = hasattr(c10d, "FlightRecorderHook")
    told = c10d._dump_fr_trace_json(backend="nccl2") if hooked else c10d._dump_nccl_trace_json()
    with open(os.path.join(os.environ["OUTPUT_DIR"], f"collectives{dist.get_rank()}.json"), "wb") as file:
        file.write(told)


keeper = threading.Timer(4, keep)
keeper.daemon = True
keeper.start()
value = torch.ones(4, device="cuda:0")
for _ in range(3):
    dist.all_reduce(value)
value.sum().item()
wide = torch.ones(8, device="cuda:0")
if dist.get_rank() == 0:
    dist.all_reduce(wide)
print(json.dumps(wide.sum().item()))
dist.barrier()
torch.cuda.synchronize()
"""
"""Rank 1 leaves out the fourth sum; rank 0 waits for it, where scripts wait for a GPU. NCCL's own records are kept."""

LONG_KERNEL = """
import json
import time
import torch

def spin(cycles):
    start = time.monotonic()
    torch.cuda._sleep(cycles)
    torch.cuda.synchronize()
    return time.monotonic() - start


spin(1 << 20)
probe = 1 << 30
print(json.dumps(spin(int(25 * probe / spin(probe)))))
"""
"""A GPU that computes for 25 seconds and says nothing, and a processor that waits for it."""

HOLDS_AND_COMPUTES = """
import torch

free, _total = torch.cuda.mem_get_info(0)
held = torch.ones(int(0.8 * free), dtype=torch.uint8, device="cuda:0")
square = torch.ones(8192, 8192, device="cuda:0")
print("holding", flush=True)
while True:
    for _ in range(64):
        square = (square @ square).clamp(0, 1)
    torch.cuda.synchronize()
"""

WAITS_IN_NCCL = """
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(0)
value = torch.ones(1 << 20, device="cuda:0")
while True:
    dist.all_reduce(value)
    value.fill_(1).sum().item()
"""
"""Ranks that are always within a collective."""

OUT_OF_MEMORY = """
import torch

_free, total = torch.cuda.mem_get_info()
torch.empty(2 * total, dtype=torch.uint8, device="cuda")
"""

ASSERTS = """
import torch

logits = torch.randn(8, 10, device="cuda")
labels = torch.full((8,), 10, device="cuda")
loss = torch.nn.functional.cross_entropy(logits, labels)
print(loss.item())
"""
"""Labels from 1 to 10 where they go from 0 to 9."""

ILLEGAL_ACCESS = '''
import torch

source = """
extern "C" __global__ void beyond(float* out) { out[1LL << 40] = 1.0f; }
"""
beyond = torch.cuda._compile_kernel(source, "beyond")
beyond((1, 1, 1), (1, 1, 1), (torch.zeros(1, device="cuda"),))
torch.cuda.synchronize()
'''

BAD_ORDINAL = """
import torch

torch.cuda.set_device(torch.cuda.device_count())
"""

SPEED = """
import cProfile
import json
import pstats
import sys
import time
import warnings
import torch
from torch import nn

torch.manual_seed(0)
steps = {steps}
model = {model}.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn({shape}, device="cuda"), torch.randint(0, 10, ({shape}[0],), device="cuda")

def train(number):
    for _ in range(number):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

train(steps // 10)
torch.cuda.synchronize()
start = time.perf_counter()
train(steps)
torch.cuda.synchronize()
took_s = time.perf_counter() - start
torch.cuda.set_sync_debug_mode("warn")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    train(256)
torch.cuda.set_sync_debug_mode("default")
waits = [str(one.message) for one in caught if "synchroniz" in str(one.message)]
profile = cProfile.Profile()
profile.runcall(train, 256)
pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(40)
print(json.dumps({{"step_s": took_s / steps, "num_waits": len(waits)}}))
"""
"""A loop that never waits for its GPU: what waits is somebody else. Where its time goes is kept on standard error."""

SMALL_NET = "nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 256), nn.ReLU(), nn.Linear(256, 10))"
WIDE_NET = (
    "nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), *[nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), "
    "nn.BatchNorm2d(64), nn.ReLU()) for _ in range(16)], nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))"
)

STYLES_HEAD = """
import hashlib
import json
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel as DDP

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
torch.use_deterministic_algorithms(True)
device = torch.device("cuda:0")
torch.cuda.set_device(device)
torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10)).to(device)
batches = [
    (torch.randn(16, 3, 8, 8, device=device), torch.randint(0, 10, (16,), device=device)) for _ in range(24)
]
"""
STYLES_TAIL = """
digest = hashlib.sha256()
for name, tensor in sorted(net.state_dict().items()):
    digest.update(tensor.detach().float().cpu().contiguous().numpy().tobytes())
print(json.dumps(digest.hexdigest()))
if dist.is_initialized():
    dist.destroy_process_group()
"""
_STEP = """
for x, y in batches:
    optimizer.zero_grad()
    {loss}
    optimizer.step()
"""
STYLES = {
    "scaled": """
scaler = torch.amp.GradScaler("cuda")
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for x, y in batches:
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = cross_entropy(net(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
""",
    "bf16": """
optimizer = torch.optim.AdamW(net.parameters(), lr=0.001, fused=True)
"""
    + _STEP.format(
        loss="""with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = cross_entropy(net(x), y)
    loss.backward()"""
    ),
    "channels_last": """
net = net.to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
"""
    + _STEP.format(loss="cross_entropy(net(x.to(memory_format=torch.channels_last)), y).backward()"),
    "compiled": """
model = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
"""
    + _STEP.format(loss="cross_entropy(model(x), y).backward()"),
    "reduce_overhead": """
model = torch.compile(net, mode="reduce-overhead")
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
"""
    + _STEP.format(loss="cross_entropy(model(x), y).backward()"),
    "graphed_callables": """
model = torch.cuda.make_graphed_callables(net, (batches[0][0],))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
"""
    + _STEP.format(loss="cross_entropy(model(x), y).backward()"),
    "captured": """
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
static_x, static_y = (tensor.clone() for tensor in batches[0])
beside = torch.cuda.Stream()
beside.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(beside):
    for _ in range(3):
        optimizer.zero_grad()
        cross_entropy(net(static_x), static_y).backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(beside)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad()
with torch.cuda.graph(graph):
    cross_entropy(net(static_x), static_y).backward()
    optimizer.step()
for x, y in batches:
    static_x.copy_(x)
    static_y.copy_(y)
    graph.replay()
torch.cuda.synchronize()
""",
    "bucket_views": """
dist.init_process_group("nccl")
model = DDP(net, device_ids=[0], gradient_as_bucket_view=True)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
"""
    + _STEP.format(loss="cross_entropy(model(x), y).backward()"),
    "comm_hook": """
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

dist.init_process_group("nccl")
model = DDP(net, device_ids=[0])
model.register_comm_hook(None, default_hooks.bf16_compress_hook)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
"""
    + _STEP.format(loss="cross_entropy(model(x), y).backward()"),
}
"""Ways of training that a probe could disturb; each leaves its weights in `net`."""

SHARDED = """
import json
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("nccl")
torch.cuda.set_device(0)
torch.manual_seed(0)
mesh = init_device_mesh("cuda", (dist.get_world_size(),))
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).cuda()
for layer in model:
    if isinstance(layer, nn.Linear):
        fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
for _ in range(6):
    optimizer.zero_grad()
    x, y = torch.randn(32, 64, device="cuda"), torch.randint(0, 10, (32,), device="cuda")
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
if dist.get_rank() == 0:
    torch.save(state, os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))
print(json.dumps(sorted(state)))
dist.destroy_process_group()
"""

MEMORY = """
import json
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(12):
    optimizer.zero_grad()
    x, y = torch.randn(256, 4096, device="cuda"), torch.randint(0, 10, (256,), device="cuda")
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
torch.cuda.synchronize()
free, total = torch.cuda.mem_get_info()
print(json.dumps({"peak": torch.cuda.max_memory_allocated(), "used": total - free}))
"""

_FOR_CPU = (
    ('init_process_group("nccl")', 'init_process_group("gloo")'),
    ('init_device_mesh("cuda"', 'init_device_mesh("cpu"'),
    ("torch.cuda.set_device(device)\n", ""),
    ("torch.cuda.set_device(0)\n", ""),
    ("cuda:0", "cpu"),
    ('device="cuda"', 'device="cpu"'),
    ('"cuda"', '"cpu"'),
    (".cuda()", ""),
    (", device_ids=[0]", ""),
)


def on_cpu(script: str) -> str:
    """The same for ranks without a device."""
    for there, here in _FOR_CPU:
        script = script.replace(there, here)
    return script
