r"""The words of the trace: every event the probe may write, field by field.

One event is one JSON object on one line, written with a single `os.write` to the rank's own pipe. The supervisor
puts the time of receipt in front (`<seconds>\t<json>\n`, seconds since the ranks' start, its own monotonic clock)
and never parses the rest. Readers must expect truncated lines, forged lines and garbage.

Common fields: `s` number and seal of the line (see `seals`; not there without a secret), `e` kind (one of the constants
below), `t` seconds since the ranks' start on the rank's monotonic
clock. A *site* is `[path, line, function]` of the innermost frame inside the submission's folder (path relative to
it), or null. *Sums* are a list of numbers, one float64 sum per tensor; a *fingerprint* is the same over four chosen
tensors (null where there is no tensor) with every 61st element counted twice, since some sums are 0 by nature. Equal
inputs give equal bits. Numbers may be NaN or Infinity. Ids of loaders and wrappers count up from 0 in order of
creation, ids of optimizers in order of their first step.

START
    torch, python, rank, local_rank, world_size (as told by the launcher), pid, seed, probe (version of these words).
UNSUPPORTED
    reason: the probe could not hook this torch (says which it needs), one of its hooks failed (says which), or it looks
    at no steps any more because SEVERAL_THREADS take some.
GROUP
    op `init` or `destroy`, backend, rank, world_size, device, timeout_s, sequence (collectives so far, also those
    below Python; null unknown), site, seconds.
COLLECTIVE
    name (`all_reduce`, `barrier`, `store.get`, …), site, n (calls so far at this site, from 1), named (false where it
    was seen at the process group alone: functional collectives, DTensor, a group's own methods; not DDP's reducer),
    reduce_op, numel (of the tensors that this rank put in, or received into; null where it gave objects), device,
    async_op, seconds; written when the call returned, or, with named false, before it and without reduce_op and
    seconds; the first 64 calls per site, then every 64th, and the first 8 after each beginning of an evaluation or of a
    pass over a loader. Calls that another collective makes inside don't count. Also ranks, where it went among some
    ranks only; forward, true where it was called within a trained model's forward pass; backward, true where a backward
    pass was on its way; and differentiated, true where it was called in the forward pass of an autograd function that
    gradients come back through.
TRAFFIC
    all calls of a collective or message from one line, told at the end of the script: name, site, ranks (where it went
    among some ranks only, else null), peer (the other rank of a message, null where it isn't known), calls, bytes (of
    the tensors that this rank put in or, of a message, received; null where it gave objects), largest (absolute value
    of the numbers that it put in; null where that is not known of every call, such as on a device). Named as in
    COLLECTIVE, what `batch_isend_irecv` begins as `isend` and `irecv`; at most 512 lines.
MESH
    dims (of a device mesh: name and the ranks along it that this one is among; only those not told before), site.
PARALLEL
    kind (`tensor`: `parallelize_module`; `expert`: the same for experts; `pipeline`: a stage of
    `torch.distributed.pipelining`; `context`: `context_parallel`), dims (given to it, as in MESH), stage (of a
    pipeline, else null), site; once for each.
PLACED
    over which ranks an optimizer's distributed tensors are split, at its first step: optimizer, splits (dimensions, as
    in MESH), names (of the parameters that fingerprints stand for), of (for each of these, positions in splits).
WRAP
    id, kind (`ddp`, `fsdp2`, `fsdp`, `data_parallel`), via (`accelerate`, `fabric` or "": the library that wrapped),
    site, module (class name), num_params, num_tensors, gradient_bytes (these three: what requires gradients),
    num_buffers, num_batchnorm, num_sync_batchnorm, param_devices, device_ids, broadcast_buffers,
    find_unused_parameters, ignored (names of parameters with a gradient that DDP was told to leave alone, at most 64;
    absent for none), replicas (ranks that average gradients of equal parts by this wrapper), parts (ranks that
    parameters are split among; both null where it isn't told). `fsdp2` is written for every module given to
    `fully_shard`, the whole model last.
GATHERED
    parameters of `fully_shard` that are whole on this rank at once, as one of the first training passes or (backward)
    its backward pass begins: units (given to it, without the one around all others), wraps (ids of those that are
    whole), elements (of these units' own parameters), of (of all units'), rooted (there is one around all others);
    written where it is more than before.
COMM_HOOK
    what DDP does in place of its own averaging: wrap, hook (qualified name, "" for one of those built in), site.
LOADER
    id, site, dataset (class of the root data set), root (id of the root data set in this rank), root_size, digest
    (of the root's own arrays and lists: ranks that built the same root have equal ones; null where it holds none),
    size (samples of the loader's own data set), split (`train`/`validation`/null as the root says), sampler (class),
    num_replicas, sampler_rank, sampler_seed, shuffle, batch_size, drop_last, num_workers, iterable, resolvable
    (indices can be traced back to the root), hides (the root is a class of the script's around a `Subset`: its
    indices may mean other samples on another rank, so FEED events come as well).
PASS
    loader, n (nth pass over it, from 0), sampler_epoch (null if the sampler has none), site, state (of a data set of
    the script's own, a digest of all it holds, whole numbers included: it changes where samples are dealt anew).
BATCH
    loader, pass, n (nth delivered batch of the pass), size (samples), indices (into the root data set; null if
    unknown), wait_s. At the first steps and at some later ones, drawn by lot, also labels: what came for these indices
    as a tensor of one whole number for each.
PASS_END
    loader, pass, num_batches, exhausted (false after `break`), changed (true where that state is another one by now).
FEED
    samples that no loader's known indices explain: step, hashes (one hex string per sample, at most 256, of the
    first tensor given to the model in training mode), size. On other devices than the CPU: the first 50 steps. With
    spot true: a look at samples that known indices do explain, at the first 4 steps and one in 16 drawn by lot (of a
    long run one in 32 or 64). anchors: of rows of whole numbers one place each, see `fingerprints.anchors`; else empty.
PICTURES
    samples that a model was given in training, at the steps that are audited and on each rank: n (of the step), num (of
    samples: at most 32 of one batch, drawn by lot), text (whether they are rows of whole numbers), values (base64: of
    pictures one byte for each element, at most 4,096 a sample, from 0 for the sample's smallest number to 255 for its
    largest; of text the last two bytes of each number, lowest first, of long rows 2,048 numbers in a row).
BYPASS
    a wrapped module's inner module was called in training mode with gradients on, not through the wrapper (which may
    be gone), and a backward pass followed: wrap, site, n (from 0); the first 8.
EVALUATION
    a run of forward passes in evaluation mode or without gradients: op `begin`/`end`, wrap or null,
    through_wrapper, site, num_forwards, num_samples (given and answered; both complete at `end`), training_mode,
    grad_enabled. At `end` also trained, true where a step came of them: then they were no evaluation.
EVALUATED
    hashes (as FEED's) of what a model was given in evaluation, and the newest batch before it: loader, pass, n. The
    first 512 samples that came while batches were of data sets that say they are for validation (validates), and as
    many of others.
CHANGED
    a module inside DDP is no longer the one that was wrapped: wrap, added (names of parameters that have a gradient and
    that DDP does not know), thawed (of these, those that were there at the wrap and required none), frozen (names of
    those that no longer require one), removed (number of tensors that are gone); at most 8 names each; once per wrap.
TRAINED_IN_EVALUATION
    a step was trained with the whole network in evaluation mode, unlike the one before it: n (of the step), wrap, site
    (of a forward pass), left (line that called `eval` last of what holds the network; null unknown), num_batchnorm,
    num_dropout (layers that act otherwise there; attention and recurrent layers with dropout count), untracked (its
    BatchNorm layers hold the statistics of a new network); the first 64.
UNHELD
    parameters of one model that got gradients, that no optimizer was ever given, and that were at the end of the script
    what they were at first: wrap (null without one), names (at most 512); not after an exception.
NO_SYNC
    op `enter`/`exit`, wrap, site; the first 64.
BACKWARD
    loss (float, on the CPU only, null unknown; before a gradient scaler multiplied it), site; function (of autograd,
    that made the loss: `NllLoss`), reduction (`mean`, `sum` or ""), factor (what it was multiplied by since), summed
    (ranks over which a collective of the graph adds it up, in both directions; absent for 1), given (true where it
    began with gradients that the script gave, as in a pipeline's stages); the first 8 (later losses are in STEP).
CROSS_ENTROPIES
    at backward passes of the first 8 steps, and of one in 32 drawn by lot (more while the run is young): n (optimizer
    steps so far), means (of each cross entropy with labels that the loss is a sum of, over the batch and as it is,
    whatever it was multiplied by; at most 8). Not there where the loss holds none.
STEP
    n (optimizer steps so far, from 0), optimizer (id), kind (class; "" for weights that the script changed without an
    optimizer, seen when they are next used), lr (list, one per group), samples (fed to models in training since the
    last step), numbers (in rows of these, such as tokens; absent for 0), evaluation_mode (true where the whole network
    was in that mode; else absent), data_s (waiting for training
    batches), compute_s (first forward pass until here), optimizer_s (the optimizer's previous step), loss, synced
    (false when the last training forward pass was without gradient averaging: in `no_sync`, or around the wrapper; null
    without DDP), backwards (backward passes since the last step of any optimizer), unsynced (of these, after a forward
    pass without averaging), exchanges (collectives that the default group has run since the last step; absent where
    there is no group), later (on a device alone, of steps some time ago, as it is there by now: lists n, loss and
    device_s, which is the device's own time from the step's first forward pass to its end).
    On the first 8 steps of an optimizer and then on some, drawn by lot: one in 4 at first, one in 32 from step 128 on,
    one in 64 from step 1,024 and one in 128 from step 4,096 on (rarer for huge tensors, equal on all ranks),
    also grads (fingerprint; null where a module is trained and the optimizer steps tensors of its own), grad_names,
    own, own_last (what the rank's own backward passes gave to the same parameters since the last step, before it was
    averaged: fingerprints of the sum and of the last; from the second step on), rss_bytes,
    device_bytes, site, num_params (tensors of the optimizer that require gradients), num_missing (of these, without a
    gradient), missing (names of the first four),
    wraps, modules (wrappers that hold what the optimizer steps, and the classes of its models, as at its first step),
    within (true where a backward pass was on its way, as in a hook on a gradient; else absent).
    On the step after one with grads also empty (of the backward passes between the two, how many found all chosen
    gradients empty, None or zero) and, where there are any, kept: names of those that each of these passes found there,
    so that nobody had cleared them, and lost: how many of these passes gave gradients that the next one found cleared,
    while no weight had changed in between.
SETTINGS
    numbers and switches of an optimizer's groups, without their learning rates (`eps`, `betas`, `nesterov`, …): at its
    first step, and where they have changed, which is looked for at steps that tell grads and as many others: n (of the
    step), optimizer (id), groups (for each of the first 64, settings by name: a number, true or false, or a list of
    numbers); the first 512 of an optimizer.
STEPPED_ON
    collectives ran within a step that told its gradients, in a hook of its optimizer or a `step` of the script's own:
    n (of the step), grads (as in STEP, as they were after that); the last one counts.
UNSTEPPED
    weights that an optimizer has stepped changed twice between gradients although nobody stepped: n (steps so far),
    gradients (taken since then), site; looked for whenever the number of gradients within one step has doubled, from
    16 on.
AUDITED
    all that a step is taken with, after its STEP, by one rank and at a step drawn by lot in each doubling of the run's
    length, where it is of one model of at most 524,288 elements: n (of the step), names (of all parameters), stride
    (one gradient in so many of each parameter is told, from the first on).
AUDITED_PART
    n, of (position of the parameter in names), weights (base64 of 131,072 float16 at most, those of one parameter in
    their order), gradients (base64 of bfloat16, with a parameter's first part; null with others and where it has none).
CAPTURED
    what (`forward`, `backward`, `step`, …: the hook that something passed): a CUDA graph was captured of it, once for
    each. What is replayed afterwards is not seen.
PARAMS
    n (step after which), sums (fingerprint), names: parameters as the next training pass or step finds them;
    after the same steps that have grads or could have some, and as many others that are drawn by themselves.
    drawn, drawn_sums: of this look alone, others than names; of a large one a part, with its index behind the name.
MOVED
    training went on with other weights than a looked-at step left, at its first pass and as the next step began: n (of
    the step), of a few weights as lengths of one vector: step (what the step moved), aside (how far what moved from the
    pass before it to the pass after it lies beside the step's own line), left (fingerprint of all of them as it left
    them); told where both that and what is found at the next step are a quarter of the step away.
FINAL
    wrap, names, sums: all trained parameters (at most 512) of one model when the script ended without an error;
    sharded: true where they differ by design; touched: true where they were changed after the last step (weights
    loaded again, say), so that ranks may differ honestly.
SAVE
    path, out, site, api (`torch.save`, `safetensors`, `dcp`), prefix (`module.`, `_orig_mod.`, both, or ""),
    num_tensors, sums (over tensors by sorted name, floats only, at most 512), bytes, seconds, live (it holds a trained
    model as it is now), untracked (its BatchNorm layers have counted no batch: their statistics are a new network's).
LOAD
    path, out, site, map_location (as text; "" where none was given, `callable` for a function), devices (of the tensors
    that came of it, sorted), seconds: `torch.load` as called by the script; the first 64.
FILE
    op (`open`, `rename`, `mkdir`, `remove`), path, out, site; attempts to write only, the first 256, without
    temporary files and caches. Paths below the output folder are relative to it and marked `out: true`.
DOWNLOAD
    dataset (class, "" for a plain file), root, site, guarded (null unknown), started (true when a download really
    began).
PROCESS
    op (`spawn`, `fork`, `subprocess`), site, target, by (package that started it, "" the script itself); loader
    workers excluded; the first 64.
REACH
    what (`process`: a path into a process; `kill`: a signal to its parent; `import`: one of the probe's or launcher's
    modules; `compile`: code under the name of one of their files; `writer`: the probe's writer, called by code that is
    not the probe's; else the function's name), target, site: the script's own code used what looks into other processes
    or all objects; the first 16.
LR_SCHEDULER
    kind, site, length (of its whole schedule, in calls of its `step`; null where it has no end).
IDLE_SCHEDULE
    a schedule was stepped whose optimizer has never taken a step, while others have: kind, site (both as of its
    LR_SCHEDULER), calls (of its `step` so far: told at 1, 2, 4, …), n (optimizer steps so far); at most 64.
PLATEAU
    a `ReduceLROnPlateau` was stepped: mode (`min` or `max`), value (that it was given), before, after (the largest rate
    of its optimizer), n (optimizer steps so far), made (site of its LR_SCHEDULER), site; the first 256.
HELD
    what an optimizer's second step left in this rank's memory: kind (class of the optimizer), num_tensors, num_sharded
    (parameters, and how many of them are DTensors), param_bytes, whole_param_bytes, state_bytes, whole_state_bytes
    (this rank's part, and what it would be unsharded), whole_copies, copied_bytes (how often plain tensors have nearly
    all of the sharded parameters, and their bytes), group_elements (of the whole parameters of each group that are
    trained, at most 256), site; at most 8.
RANDOM
    the process's random generators when a step's first training forward pass begins, at the first 3 steps: n
    (optimizer steps so far), states (generator, of `torch`, `python`, `numpy` and `cuda`, → digest of its state),
    drawn (generators that gave numbers since the last step ended, as random transforms take them).
SEEDED
    api (`torch.manual_seed`, …), value, site; the first 16.
LINE_CHANGE
    a line of the script changed a trained model's weights or gradients (second runs only, see `line_changes`): model
    (number in this rank), what (`weights`, `gradients`), step (optimizer steps so far), site (null: found so to begin
    with), callers (sites that led there, innermost first), names, sums (fingerprint of each named tensor).
EXCEPTION
    type, message (first 2,000 characters), frames (list of sites, innermost first, submission only).
END
    steps, backwards, forwards, derivatives (calls of `torch.autograd.grad`), elsewhere (samples given to modules that
    nobody is known to train, of the classes of those that were asked for their parameters: copies of the network, say),
    group_destroyed (null where there was no group), sequence, peak_device_bytes, later (as in STEP, of the last steps;
    null for none).
"""

from __future__ import annotations

VERSION = 1

START = "start"
UNSUPPORTED = "unsupported"
SEVERAL_THREADS = "several threads train at once"
GROUP = "group"
COLLECTIVE = "collective"
TRAFFIC = "traffic"
MESH = "mesh"
PARALLEL = "parallel"
PLACED = "placed"
WRAP = "wrap"
GATHERED = "gathered"
COMM_HOOK = "comm_hook"
LOADER = "loader"
PASS = "pass"
BATCH = "batch"
PASS_END = "pass_end"
FEED = "feed"
PICTURES = "pictures"
BYPASS = "bypass"
EVALUATION = "evaluation"
EVALUATED = "evaluated"
CHANGED = "changed"
TRAINED_IN_EVALUATION = "trained_in_evaluation"
UNHELD = "unheld"
NO_SYNC = "no_sync"
BACKWARD = "backward"
CROSS_ENTROPIES = "cross_entropies"
STEP = "step"
SETTINGS = "settings"
STEPPED_ON = "stepped_on"
UNSTEPPED = "unstepped"
AUDITED = "audited"
AUDITED_PART = "audited_part"
CAPTURED = "captured"
PARAMS = "params"
MOVED = "moved"
FINAL = "final"
SAVE = "save"
LOAD = "load"
FILE = "file"
DOWNLOAD = "download"
PROCESS = "process"
REACH = "reach"
LR_SCHEDULER = "lr_scheduler"
IDLE_SCHEDULE = "idle_schedule"
PLATEAU = "plateau"
HELD = "held"
RANDOM = "random"
SEEDED = "seeded"
LINE_CHANGE = "line_change"
EXCEPTION = "exception"
END = "end"
