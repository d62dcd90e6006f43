"""The one reader of the environment: every `GRADER_*` variable, its default and its meaning.

Nothing else in the package reads `os.environ` for configuration. Ranks get none of these.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pydantic_settings import BaseSettings, SettingsConfigDict

_CHECKOUT = Path(__file__).resolve().parent.parent


def _default_state_dir() -> Path:
    # A checkout keeps its state beside itself, so that two clones never share calibrations by accident.
    if (_CHECKOUT / "tasks").is_dir():
        return _CHECKOUT / ".grader"
    return Path.home() / ".local" / "share" / "grader"


class Settings(BaseSettings):
    """Configuration from `GRADER_*` variables; unknown values are refused, unknown names ignored."""

    model_config = SettingsConfigDict(env_prefix="GRADER_", frozen=True)

    tasks_dir: Path = _CHECKOUT / "tasks"
    """Folder of task folders."""
    skeletons_dir: Path = _CHECKOUT / "skeletons"
    """Folder of skeleton folders, one per task."""
    containers_dir: Path = _CHECKOUT / "containers"
    """Folder of image recipes and the seccomp profile."""
    state_dir: Path = _default_state_dir()
    """Prepared data, calibrations and reports that were given no other place."""
    data_dir: Path | None = None
    """Prepared data sets; default `<state_dir>/data`."""
    dataset: str | None = None
    """Data set to use where a task allows several; default: the task's first prepared one."""
    runtime: str = "process"
    """Runtime used when the command names none."""
    profile: str = "cpu"
    """Profile used when the command names none."""
    image_extras: bool = False
    """Put accelerate and lightning-fabric into the train image, too."""

    docker_runtime: str = ""
    """OCI runtime that containers are run by, such as `runsc`; "" leaves it to the engine."""
    pool_pairs: int = 1
    """Pairs of containers kept warm for the next attempts; 0: every attempt starts cold."""
    pool_bytes: int = 3 << 30
    """Memory that idle pairs may take together; fewer are kept where they would take more."""

    apptainer_user: str = ""
    """Account that Apptainer's containers belong to where the grader itself is root; otherwise they are our own."""
    apptainer_images: Path | None = None
    """Folder of Apptainer's image files, readable for that account; default `<state_dir>/apptainer`."""

    database_url: str = ""
    """The service's database, `sqlite:///FILE` or `postgresql://…`; default: `<state_dir>/grader.db`."""
    file_store: str = ""
    """Where evidence and reports lie: a folder that all hosts share, or `database`; default: `<state_dir>/files`."""

    @property
    def database(self) -> str:
        """Address of the service's database."""
        return self.database_url or f"sqlite:///{(self.state_dir / 'grader.db').absolute()}"

    @property
    def data_root(self) -> Path:
        """Folder of prepared data sets."""
        return self.data_dir if self.data_dir is not None else self.state_dir / "data"


@cache
def settings() -> Settings:
    """The process's settings, read once."""
    return Settings()
