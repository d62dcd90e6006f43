"""The words of the trace: every event the probe may write, field by field.

One event is one JSON object on one line, written with a single `os.write` to the rank's own pipe. The
supervisor puts the time of receipt in front (`<seconds>\\t<json>\\n`, seconds since the ranks' start, its own
monotonic clock) and never parses the rest. Readers must expect truncated lines, forged lines and garbage.

Common fields: `e` kind (one of the constants below), `t` seconds since the ranks' start on the rank's monotonic
clock. A *site* is `[path, line, function]` of the innermost frame inside the submission's folder (path relative
to it), or null. A *fingerprint* is a list of numbers, one float64 sum per chosen tensor (null where there is no
tensor); equal inputs give equal bits. Ids of loaders, optimizers, wrappers count up from 0 in order of creation.

| kind | fields |
|---|---|
| START | torch, python, rank, local_rank, world_size (from the environment), pid, seed, probe (version of these words) |
| UNSUPPORTED | reason: the probe could not hook this torch; says which it needs |
| GROUP | op `init` or `destroy`, backend, rank, world_size, device, timeout_s, sequence (collectives so far, null unknown), site, seconds |
| COLLECTIVE | name (`all_reduce`, `barrier`, …), site, n (calls so far at this site), reduce_op, numel, device, async_op, seconds; first 64 calls per site, then every 64th |
| WRAP | id, kind (`ddp`, `fsdp2`, `fsdp`, `data_parallel`, `fabric`, `accelerate`), site, module (class name), num_params, num_tensors, gradient_bytes, num_buffers, num_batchnorm, num_sync_batchnorm, param_devices, device_ids, broadcast_buffers, find_unused_parameters |
| LOADER | id, site, dataset (class of the root data set), root (id of the root data set in this rank), root_size, size (samples of the loader's own data set), split (`train`/`validation`/null as the root says), sampler (class), num_replicas, sampler_rank, sampler_seed, shuffle, batch_size, drop_last, num_workers, iterable, resolvable (indices can be traced back to the root) |
| PASS | loader, n (nth pass over it, from 0), sampler_epoch (null if the sampler has none), site |
| BATCH | loader, pass, n (nth delivered batch of the pass), size (samples), indices (into the root data set; null if unknown), wait_s |
| PASS_END | loader, pass, num_batches, exhausted (false after break) |
| FEED | samples without known indices: step, hashes (one hex string per sample of the first tensor given to the model in training mode), size |
| BYPASS | first calls of a wrapped module's inner module in training mode with gradients on, not through the wrapper: wrap, site, n |
| EVALUATION | op `begin`/`end`, wrap or null, through_wrapper, site, num_forwards, num_samples, training_mode, grad_enabled |
| NO_SYNC | op `enter`/`exit`, wrap, site; first 64 |
| BACKWARD | loss (float, cpu only, null unknown), site; first 8 and then every step where it is free |
| STEP | n (optimizer steps so far, from 0), optimizer (id), kind (class), lr (list, one per group), samples (fed since the last step), data_s, compute_s, optimizer_s (previous step's), loss, grads (fingerprint or null when not sampled), grad_names, synced (false when the last backward ran without gradient sync; null unknown), rss_bytes, device_bytes, site |
| PARAMS | n (step after which), sums (fingerprint), names: parameters as the next forward pass finds them |
| FINAL | wrap, names, sums: all trained parameters (at most 512) when the script ended; sharded: true where they differ by design |
| SAVE | path, site, api (`torch.save`, `safetensors`, `dcp`), prefix (`module.` or ""), num_tensors, sums (fingerprint over tensors by sorted name, floats only, at most 512), bytes, seconds |
| FILE | op (`open`, `rename`, `mkdir`, `remove`), path, site; writes only, first 256; paths below the output folder are relative to it and marked `out: true` |
| DOWNLOAD | dataset, root, site, guarded (null unknown), started (true when a download really began) |
| PROCESS | op (`spawn`, `fork`, `subprocess`), site, target; loader workers excluded |
| LR_SCHEDULER | kind, site |
| SEEDED | api (`torch.manual_seed`, …), value, site; first 16 |
| EXCEPTION | type, message (first 2,000 characters), frames (list of sites, innermost first, submission only) |
| END | steps, backwards, forwards, group_destroyed, sequence, printed_lines, peak_device_bytes |
"""

from __future__ import annotations

VERSION = 1

START = "start"
UNSUPPORTED = "unsupported"
GROUP = "group"
COLLECTIVE = "collective"
WRAP = "wrap"
LOADER = "loader"
PASS = "pass"
BATCH = "batch"
PASS_END = "pass_end"
FEED = "feed"
BYPASS = "bypass"
EVALUATION = "evaluation"
NO_SYNC = "no_sync"
BACKWARD = "backward"
STEP = "step"
PARAMS = "params"
FINAL = "final"
SAVE = "save"
FILE = "file"
DOWNLOAD = "download"
PROCESS = "process"
LR_SCHEDULER = "lr_scheduler"
SEEDED = "seeded"
EXCEPTION = "exception"
END = "end"
