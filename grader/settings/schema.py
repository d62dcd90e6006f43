"""Every `GRADER_*` variable, its default and its meaning. Ranks get none of these."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from grader.settings import BUILT_IN, CHECKOUT, course_here, tasks_dir
from grader.settings.environment import given_values


def _default_skeletons_dir() -> Path:
    beside = tasks_dir().parent / "skeletons"
    return beside if beside.is_dir() else BUILT_IN / "skeletons"


def _default_state_dir() -> Path:
    # A course keeps its state beside itself, so that two never share calibrations by accident.
    tasks = tasks_dir()
    if tasks == course_here():
        return (tasks.parent if tasks.name == "tasks" else tasks) / ".grader"
    if (CHECKOUT / "tasks").is_dir():
        return CHECKOUT / ".grader"
    return Path.home() / ".local" / "share" / "grader"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Configuration from `GRADER_*` variables; values that are none for their field are refused, unknown names ignored.

    `GRADER_X_FILE` may name a file that holds the value of `GRADER_X`: for secrets, as engines hand them in.
    """

    tasks_dir: Path = field(default_factory=tasks_dir)
    """Folder of task folders; default: the nearest upwards that holds `course.toml`, or else the built-in course's."""
    skeletons_dir: Path = field(default_factory=_default_skeletons_dir)
    """Folder of skeleton folders, one per task, for tasks that hold none themselves; default: `skeletons` beside
    that of the tasks, or else the built-in course's."""
    containers_dir: Path = BUILT_IN / "containers"
    """Folder of image recipes and the seccomp profile."""
    state_dir: Path = field(default_factory=_default_state_dir)
    """Prepared data, calibrations and reports that were given no other place; default: `.grader` in the course that one
    stands in or in the clone, or else in the home folder."""
    local_dir: Path | None = None
    """Leases of devices, and folders that workers judge in: on a disk of this host, where several hosts share the state
    folder; default: the state folder."""
    data_dir: Path | None = None
    """Prepared data sets; default `<state_dir>/data`."""
    class_labels_key: str = ""
    """Decides under which numbers a submission meets the classes; the same on all hosts of a site, and nobody else's to
    know. Default: one that is made and kept in the state folder."""
    evidence_dir: Path | None = None
    """Kept evidence of the tasks' own submissions, for `grader verify --replay`; default `<state_dir>/evidence`."""
    dataset: str | None = None
    """Data set to use where a task allows several; default: the task's first prepared one."""
    runtime: str = "process"
    """Runtime used when the command names none."""
    profile: str = "cpu"
    """Profile used when the command names none."""
    reference_tries: int = 3
    """Runs that a provisional reference may take while the machine is busy; 1: the first one holds, however busy."""
    image_extras: bool = False
    """Put accelerate and lightning-fabric into the train image, too."""

    gpu_model: str = ""
    """Part of a GPU's name, such as `H100`: no others are handed out here, as reference times are of one model."""

    docker_runtime: str = ""
    """OCI runtime that containers are run by, such as `runsc`; "" leaves it to the engine."""
    docker_gpus: Literal["auto", "hook", "cdi"] = "auto"
    """How containers get GPUs: `hook`, by the NVIDIA Container Toolkit's hook; `cdi`, by CDI files that name each GPU
    by its UUID; `auto`: CDI where the engine has it and is not set up for the hook."""
    pool_pairs: int = 1
    """Pairs of containers kept warm for the next attempts; 0: every attempt starts cold."""
    pool_bytes: int = 3 << 30
    """Memory that idle pairs may take together; fewer are kept where they would take more."""
    rank_env: str = ""
    """What ranks find in their environment for this site's GPUs, `NAME=VALUE` with blanks between, such as
    `NCCL_P2P_DISABLE=1`: names of NCCL_*, CUDA_*, TORCH_NCCL_* and TORCH_FR_* only."""

    apptainer_user: str = ""
    """Account that Apptainer's containers belong to where the grader itself is root; otherwise they are our own."""
    apptainer_images: Path | None = None
    """Folder of Apptainer's image files, readable for that account; default `<state_dir>/apptainer`."""

    database_url: str = ""
    """The service's database, `sqlite:///FILE` or `postgresql://…`; default: `<state_dir>/grader.db`."""
    file_store: str = ""
    """Where evidence and reports lie: a folder that all hosts share, or `database`; default: `<state_dir>/files`."""

    broker_url: str = ""
    """Where hints for workers pass, and counts of rate limits: `redis://…`; default: a folder, for one machine."""
    worker_name: str = ""
    """A worker's name, the same at every start; default: the host's name."""
    worker_slots: int = 1
    """Attempts that a worker runs side by side, each in a process of its own."""
    lease_s: float = 30.0
    """How long an attempt stays a worker's without a sign of life; it gives one three times as often."""
    worker_token: str = ""
    """Token of a worker, as `grader tokens issue` shows it, for `grader worker --server`."""
    min_free_bytes: int = 1 << 30
    """A worker with less room on the state folder's disk takes nothing more until there is room again."""

    secret_key: str = ""
    """What the service signs cookies with, 32 characters or more; default: made once, kept in the state folder."""
    public_url: str = ""
    """The service's address as people type it, `https://host`; cookies are for HTTPS only where it says so."""
    sign_on: Path | None = None
    """File of those who vouch for people by OpenID Connect, and whether passwords of our own open anything; default:
    passwords alone."""
    trusted_proxies: str = ""
    """Addresses of proxies whose X-Forwarded-For is believed, separated by commas; `*`: any."""
    max_upload_bytes: int = 8 << 20
    """Size of a whole request to the service."""
    lti_key: str = ""
    """RSA key, as PEM, by which learning platforms know the service; of several the first signs, and all are published.
    Default: made once, kept in the state folder."""
    submits_per_minute: int = 30
    """How often one account may hand in, whatever its course allows; 0: no limit."""
    metrics_token: str = ""
    """Opens `/metrics` to others than this machine."""

    smtp_url: str = ""
    """Mail server that the relay hands mail to: `smtp+starttls://user@host:587`, `smtps://user@host`, `smtp://host`;
    default: none, and nobody is mailed."""
    smtp_password: str = ""
    """Password of the user that the mail server's address names."""
    mail_from: str = ""
    """Whom mails are from, such as `Grader <grader@example.edu>`."""
    mail_reply_to: str = ""
    """Where answers to mails go; default: to whom they are from."""
    mail_summary_hour: int = 7
    """Hour of the day, in each course's zone, at which its staff is mailed what waits for them."""
    mail_language: str = "en"
    """Code of the language that people are mailed in whose own is not known: who never signed in, or has no account."""
    webhook_private: bool = False
    """Let webhooks reach addresses of this machine and of private networks, too."""

    evidence_days: int = 0
    """For how many days after an attempt's end its evidence is kept, in courses without a shorter rule; 0: for good."""
    scripts_days: int = 0
    """The same of scripts, and of the reports that quote them; grades, points and findings stay in any case."""

    url: str = ""
    """Service that `grader submit` and its like talk to; default: the one that `grader login` signed in to."""
    token: str = ""
    """Token for it, where nobody signs in: a CI job's."""
    patience_s: float = 120.0
    """How long a service that is busy or away is asked again."""
    ca_file: Path | None = None
    """Certificates that vouch for the service's own, as one PEM file; default: those of this machine."""
    insecure: bool = False
    """Send passwords and tokens over plain http to other machines, too: for a network that is yours alone."""
    config_dir: Path | None = None
    """What `grader login` keeps, readable for its user alone; default: `grader` in the user's configuration folder."""

    @classmethod
    def read(cls) -> Settings:
        """What the environment says.

        Raises:
            ValueError: it has values that are none for their fields.
        """
        return cls(**given_values(cls))

    @property
    def database(self) -> str:
        """Address of the service's database."""
        return self.database_url or f"sqlite:///{(self.state_dir / 'grader.db').absolute()}"

    @property
    def broker(self) -> str:
        """Address of the broker."""
        return self.broker_url or f"filesystem://{(self.state_dir / 'broker').absolute()}"

    @property
    def local_root(self) -> Path:
        """Folder of what is locked: on a disk of this host."""
        return self.local_dir if self.local_dir is not None else self.state_dir

    @property
    def data_root(self) -> Path:
        """Folder of prepared data sets."""
        return self.data_dir if self.data_dir is not None else self.state_dir / "data"

    @property
    def evidence_root(self) -> Path:
        """Folder of kept evidence."""
        return self.evidence_dir if self.evidence_dir is not None else self.state_dir / "evidence"

    @property
    def config_root(self) -> Path:
        """Folder of what `grader login` keeps."""
        if self.config_dir is not None:
            return self.config_dir
        return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "grader"
