"""The format of `task.toml`: the shape of every table, what each key means, and how one is written.

    title = "…"                     one line, what the learner sees first
    lab = "Lab 2"                   where in the course it belongs
    summary = "…"                   one or two sentences for lists
    reference = "accepted/x.py"     the accepted submission that provisional calibration runs

    [launch]                        torchrun's own names; a profile may name its own
    [limits]                        of one run; a profile may lower or raise each: [profiles.gpu.limits]
    [data]                          data sets the task can be judged on, and whether networks are scored on them
    [profiles.<name>]               where it runs: cpu (gloo), gpu (nccl), …
    [metrics.<name>]                what networks are measured by on hidden data, and have to reach there
    [targets.time]                  as a multiple of the slowest accepted style's calibrated median
    [artifacts."table.csv"]         files that scripts leave besides weights, which `examine()` is given
    [checks]                        rules that apply, warnings that gate acceptance here, hints that cost points here
    [expected]                      what the task asks of learning rate and batch; left out: nothing
    [[rubric]]                      items in the order of the report; points sum to 100

A rubric item needs `requires` (rule codes that must not be found), `metric` (a metric whose target must be met, or
`time`) or `answer` (what `examine()` says about the artifacts and the run), or several of them.
`needs` says what a run must have for the item to show at all; rules know that of themselves.
Partial credit: for `requires`, each code carries an equal share, and an error takes them all; for `metric`,
`partial` lists shares for what misses the target by little.

Only shapes are checked here; what keys mean to each other (`tasks`) and what lies in the folder is checked beside it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from grader.catalog.tasks.metric_tables import EVERY

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=64)]
Text = Annotated[str, Field(min_length=1, max_length=2_000)]
Code = Annotated[str, Field(pattern=r"^[A-Z]+\d{3}$")]
Share = Annotated[float, Field(gt=0, lt=1)]
Levels = Annotated[
    dict[str, float],
    BeforeValidator(lambda given: {EVERY: given} if isinstance(given, int | float) else given),
    Field(min_length=1, examples=[{"digits": 0.9}]),
]
"""A number for each data set, or one for all."""
Argument = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f]*$")]
Shim = Literal["nccl-to-gloo", "batch-norm-on-cpu"]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class LaunchTable(_Table):
    """`[launch]`: how a submission is started.

    `launcher` is `fork` (ranks fork from a warm process, in the manner of torchrun), `torchrun` (the command itself) or
    `python`: the script is started once and starts its ranks by itself, on one node. `arguments` are the script's; in
    them `{nproc}`, `{nnodes}`, `{node_rank}`, `{world_size}`, `{master_addr}` and `{master_port}` stand for the run's.
    `shims` are small changes to PyTorch on profiles without GPUs, so that a script written for GPUs runs there:
    `nccl-to-gloo` and `batch-norm-on-cpu`.
    With `second_look = false` what went wrong is not run again, line by line, to see which line is to blame.
    """

    entry_point: Annotated[str, Field(pattern=r"^[\w-]+\.py$")] = "train.py"
    nproc_per_node: Annotated[int, Field(ge=1, le=64, examples=[2])] = 2
    nnodes: Annotated[int, Field(ge=1, le=16, examples=[1])] = 1
    launcher: Annotated[Literal["fork", "torchrun", "python"], Field(examples=["fork"])] = "fork"
    arguments: Annotated[list[Argument], Field(examples=[["--num-gpus", "{nproc}"]])] = []
    shims: Annotated[list[Shim], Field(examples=[["nccl-to-gloo"]])] = []
    second_look: bool = True


class LimitsTable(_Table):
    """`[limits]`: wall-clock seconds, and MiB of all ranks' memory, of the output folder, of each kept stream."""

    wall_s: Annotated[float, Field(gt=0, le=86_400, examples=[120])]
    memory_mib: Annotated[int, Field(ge=64, examples=[4096])]
    output_mib: Annotated[int, Field(ge=1, examples=[256])] = 256
    log_mib: Annotated[int, Field(ge=1, le=64, examples=[4])] = 4


class LimitsChange(_Table):
    """`[profiles.<name>.limits]`: what differs from `[limits]` on that profile."""

    wall_s: Annotated[float, Field(gt=0, le=86_400, examples=[300])] | None = None
    memory_mib: Annotated[int, Field(ge=64, examples=[4096])] | None = None
    output_mib: Annotated[int, Field(ge=1, examples=[256])] | None = None
    log_mib: Annotated[int, Field(ge=1, le=64, examples=[4])] | None = None


class DataFileTable(_Table):
    """`[data.files."<name>"]`: a file that the task's own data is made from, refused where its digest is another.

    Without `url` it lies in the task's folder under that name, or a site gives it with `--from`.
    """

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", examples=["…"])]
    url: Annotated[str, Field(pattern=r"^https?://\S+$", examples=["https://example.org/corpus.txt"])] = ""


class DataTable(_Table):
    """`[data]`: names of data sets in order of preference; the first prepared one is used unless told otherwise.

    In the place of `datasets`, `prepare` says how the task's own data is made: a script beside `task.toml`, or one of
    the kinds `images`, `arrays`, `table`, `text` and `cifar10`, which divide what `--from` gives. The set has the name
    of the task, or the one in `name`; `source` says in words what has to be given with `--from` where the script needs
    something that is not among `files`.

    `scored = false` is for tasks whose scripts may make up their numbers: the data is there for those who want samples,
    no weights need be left, and `evaluate.py` only builds the network that weights have to fit if there are any.
    Every submission meets the classes under other numbers, script and scorer alike, so that weights and labels that a
    script brings along are worth nothing; `permute_labels = false` leaves them the numbers that they have elsewhere.
    `samples` is what one sample is called, in the plural; speeds are told in it (left out: images, or samples where the
    data is the task's own). With `counted = "numbers"` every number in a row of a batch is one, as tokens
    are in windows; left out, a row is.
    """

    datasets: Annotated[list[Name], Field(min_length=1, examples=[["digits", "fashion-mnist"]])] | None = None
    prepare: Annotated[
        str,
        Field(
            pattern=r"^([\w-][\w.-]*/)*[\w-]+\.py$|^(images|arrays|table|text|cifar10)$",
            examples=["prepare.py"],
        ),
    ] = ""
    name: Annotated[Name, Field(examples=["tiny-text"])] = ""
    source: Annotated[str, Field(max_length=2_000, examples=["the folder of recordings"])] = ""
    files: dict[
        Annotated[str, Field(pattern=r"^([\w-][\w.-]*/)*[\w-][\w.-]*$", max_length=200)], DataFileTable
    ] = {}
    scored: bool = True
    permute_labels: bool = True
    samples: Annotated[str, Field(pattern=r"^[a-z][a-z -]*$", max_length=32, examples=["tokens"])] = ""
    counted: Literal["rows", "numbers"] = "rows"


class QuotedTable(_Table):
    """`[[profiles.<name>.quoted]]`: a figure published elsewhere: shown to people, held against nothing of ours."""

    figure: Annotated[Text, Field(examples=["training time below 300 s"])]
    covers: Annotated[Text, Field(examples=["training on 4 GPUs, without validation"])]
    source: Annotated[Text, Field(examples=["the workshop's assessment notebook"])]


class ProfileTable(_Table):
    """`[profiles.<name>]`: the backend, and what differs from `[launch]`, `[data]` and `[limits]` there.

    `datasets` are those of `[data]` that are used on this profile unless another is asked for. `model_size` names the
    size of the task's network that is trained there: scripts find it in $MODEL_SIZE, which is not set where no size is
    named, and `evaluate.py` as the one argument of `build_model`. `cores_per_rank` are processor cores: 1 under gloo,
    4 under NCCL where nothing is said, and never more than a machine has for each of its GPUs. `arguments` stand
    instead of those of `[launch]`.
    """

    backend: Annotated[Literal["gloo", "nccl"], Field(examples=["gloo"])]
    nproc_per_node: Annotated[int, Field(ge=1, le=64, examples=[2])] | None = None
    nnodes: Annotated[int, Field(ge=1, le=16, examples=[1])] | None = None
    cores_per_rank: Annotated[int, Field(ge=1, le=64, examples=[4])] | None = None
    datasets: Annotated[list[Name], Field(min_length=1, examples=[["fashion-mnist"]])] | None = None
    model_size: Annotated[Name, Field(examples=["large"])] | None = None
    arguments: Annotated[list[Argument], Field(examples=[["--epochs", "20"]])] | None = None
    limits: LimitsChange = LimitsChange()
    quoted: list[QuotedTable] = []


class MetricTable(_Table):
    """`[metrics.<name>]`: a figure that `evaluate()` returns under that name, and what it has to reach on hidden data.

    `title` is what it is called within a sentence (left out: its name), `unit` stands behind its values, `decimals` are
    shown. `at_least` where more is better, `at_most` where less is: a number for each data set, or one for all; a
    metric without a target is shown only, and `direction` says which values are better. Learners read values on hidden
    data in steps of `readable_step` (left out: 5 of the last decimal), always on their side of the target. `share` is
    for values from 0 to 1, which scripts may report in percent. What `metrics.json` reports under `reported_as` (left
    out: `val_<name>`) is held against the measure on the validation data.
    """

    title: Annotated[str, Field(min_length=1, max_length=60, examples=["bits per character"])] | None = None
    unit: Annotated[str, Field(max_length=20, examples=["bits"])] = ""
    decimals: Annotated[int, Field(ge=0, le=9, examples=[2])] = 3
    direction: Annotated[Literal["max", "min"], Field(examples=["min"])] | None = None
    at_least: Levels | None = None
    at_most: Levels | None = None
    readable_step: Annotated[float, Field(gt=0, examples=[0.005])] | None = None
    share: bool = False
    reported_as: Annotated[str, Field(pattern=r"^\w+$", max_length=64, examples=["val_loss"])] | None = None


class AccuracyTarget(_Table):
    """`[targets.accuracy]`: how `at_least` of `[metrics.accuracy]` was written before tasks named their metrics."""

    at_least: Annotated[dict[str, Share], Field(min_length=1, examples=[{"digits": 0.9}])]


class TimeTarget(_Table):
    """`[targets.time]`: allowed multiple of the slowest accepted style's calibrated median."""

    factor: Annotated[float, Field(gt=1, le=100, examples=[1.35])]


class TargetsTable(_Table):
    """`[targets]`: how long a run may take."""

    accuracy: AccuracyTarget | None = None
    time: TimeTarget | None = None


class ArtifactTable(_Table):
    """`[artifacts."<file>"]`: a file that a script leaves in `$OUTPUT_DIR` besides weights.

    A `.csv` with a header line, or a `.json` with a list of objects, is a table of `columns`: `count` (whole, not
    negative), `number` (finite) or `text`. A `.pt` or `.safetensors` is a dictionary of tensors and has no columns.
    """

    columns: Annotated[
        dict[Annotated[str, Field(pattern=r"^\w+$", max_length=64)], Literal["count", "number", "text"]],
        Field(examples=[{"batch_size": "count", "loss": "number"}]),
    ] = {}


class ChecksTable(_Table):
    """`[checks]`: `apply` lists the rules that are looked at (left out: all); `must` the warnings that gate here.

    `costly` lists hints that are warnings here once the run has shown them: free advice elsewhere, part of this lab.
    """

    apply: list[Code] = []
    must: list[Code] = []
    costly: list[Code] = []


class ExpectedTable(_Table):
    """`[expected]`: what the task asks of the training, for the rules OPT001 to OPT003, DATA002, SHARD001 and SHARD002.

    `scaling` lists the rules by which the peak learning rate may follow the global batch, starting from
    `base_learning_rate` at `base_batch_size`, those of the single-process script; `warmup` asks for a climb to that
    peak; `global_batch_size` prescribes the samples of all ranks together per optimizer step, to the letter where it is
    not `base_batch_size`; `new_shares` asks that each epoch deals out new shares, where rules else only advise it;
    `sharded` asks that each rank holds its part of the model and no more.
    """

    base_learning_rate: Annotated[float, Field(gt=0, le=1_000, examples=[0.1])] | None = None
    base_batch_size: Annotated[int, Field(ge=1, examples=[128])] | None = None
    scaling: Annotated[list[Literal["linear", "sqrt"]], Field(examples=[["linear"]])] = []
    warmup: Annotated[bool, Field(examples=[True])] = False
    global_batch_size: Annotated[int, Field(ge=1, examples=[128])] | None = None
    new_shares: Annotated[bool, Field(examples=[True])] = False
    sharded: Annotated[bool, Field(examples=[True])] = False


class PartialCredit(_Table):
    """One entry of `partial`: reaching `of_target` × the target earns `share` of the points.

    Where more is better `of_target` is below 1 (0.9: nine tenths of the target); where less is, and for time, above 1
    (1.2: a fifth more).
    """

    of_target: Annotated[float, Field(gt=0, examples=[0.9])]
    share: Annotated[Share, Field(examples=[0.5])]


class RubricTable(_Table):
    """`[[rubric]]`: points, and what earns them; `must = true` gates acceptance."""

    id: Annotated[Name, Field(examples=["accuracy"])]
    title: Annotated[Text, Field(examples=["Every sample is used once per epoch"])]
    points: Annotated[float, Field(gt=0, le=100, examples=[10])]
    must: bool = False
    requires: Annotated[list[Code], Field(examples=[["DATA001"]])] = []
    metric: Annotated[Name | None, Field(examples=["accuracy"])] = None
    answer: Annotated[Name | None, Field(examples=["table"])] = None
    needs: Annotated[Literal["ranks", "group", "machines", "gpus"] | None, Field(examples=["gpus"])] = None
    partial: Annotated[list[PartialCredit], Field(examples=[[{"of_target": 0.9, "share": 0.5}]])] = []


class TaskFile(_Table):
    """The whole of `task.toml`."""

    title: Annotated[Text, Field(examples=["Train on several GPUs"])]
    lab: Annotated[Text, Field(examples=["Lab 2"])]
    summary: Annotated[Text, Field(examples=["What the learner does, in a sentence."])]
    reference: Annotated[
        str, Field(pattern=r"^accepted/[\w./-]+$", examples=["accepted/distributed_sampler.py"])
    ]
    launch: LaunchTable = LaunchTable()
    limits: LimitsTable
    data: DataTable
    profiles: Annotated[dict[Name, ProfileTable], Field(min_length=1)]
    metrics: dict[Name, MetricTable] = {}
    targets: TargetsTable = TargetsTable()
    artifacts: dict[Annotated[str, Field(pattern=r"^[\w-]+\.(csv|json|pt|safetensors)$")], ArtifactTable] = {}
    checks: ChecksTable = ChecksTable()
    expected: ExpectedTable = ExpectedTable()
    rubric: Annotated[list[RubricTable], Field(min_length=1)]
