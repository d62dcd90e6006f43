"""What every room's tests share: a state folder of their own, real parts, and no silent skips where all is required.

`GRADER_REQUIRE_ALL=1` (CI sets it) turns a skipped test into a failed one, because there every part is installed.
Only what the machine itself may lack (CUDA devices, further torch versions, a program that its system does not carry)
may still be skipped. On a machine so slow that time runs out, tests of the outer ring that would begin after
`GRADER_TESTS_UNTIL` (seconds of the epoch) are not begun, and named at the end; those that show once more what others
have shown (`further`) not after `GRADER_FURTHER_UNTIL`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# How fast inputs are made says something about the machine's other work, and nothing about what is tested.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

_MAY_BE_ABSENT = ("apptainer", "gpu", "torch_matrix")
_REQUIRED = "GRADER_REQUIRE_ALL is set"
_NO_TIME = "not begun: no time was left"
_LIMITS = ("GRADER_TESTS_UNTIL", "GRADER_FURTHER_UNTIL")
_OUTER_ROOMS = ("acceptance", "client", "cluster", "faults", "rehearsal", "serve", "worker")
_QUICK = ("test_bad_input", "test_lint_command", "test_plan", "test_promises_and_the_clock", "test_tokens")
_own_state: list[str] = []
SUMMARY = "summary"
"""Property of a test whose lines are shown at the end, whether it passed or not."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep prepared data, calibrations and attempts of the tests away from the checkout's own.

    Tests that run side by side have a folder each: what one looks for on the engine is not what another has there.
    """
    # Evidence of promises is made by real runs, and is the one thing that outlives them.
    state = Path(os.environ.get("GRADER_STATE_DIR") or config.rootpath / ".grader")
    os.environ.setdefault("GRADER_EVIDENCE_DIR", str(state.absolute() / "evidence"))
    # The suite itself keeps the machine busy: a reference that waits for quiet would be run three times in every test.
    os.environ.setdefault("GRADER_REFERENCE_TRIES", "1")
    # What a promise's training comes to is no matter of the day.
    os.environ.setdefault("GRADER_CLASS_LABELS_KEY", "all tests meet the same numbers")
    if "GRADER_STATE_DIR" not in os.environ:
        _own_state.append(tempfile.mkdtemp(prefix="grader-tests-"))
        os.environ["GRADER_STATE_DIR"] = _own_state[0]
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        # Side by side, processes that compute on all cores at once wait for each other most of the time.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        own = Path(os.environ["GRADER_STATE_DIR"]) / worker
        own.mkdir(exist_ok=True)
        os.environ["GRADER_STATE_DIR"] = str(own)


def _trains_or_serves(path: Path) -> bool:
    """Whether a file's tests start trainings, workers or services in processes of their own, which takes seconds."""
    room = path.relative_to(Path(__file__).parent).parts
    return room[0] in _OUTER_ROOMS and path.stem not in _QUICK


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs containers or a browser belongs to the outer ring, and files with most slow tests come first.

    Of those that run side by side, nobody waits for one that began last.
    """
    for item in items:
        if _trains_or_serves(item.path):
            item.add_marker(pytest.mark.slow)
        wanted = set(getattr(item, "fixturenames", ()))
        if "docker_images" in wanted or item.get_closest_marker("apptainer"):
            item.add_marker(pytest.mark.slow)
        if "chromium" in wanted:
            item.add_marker(pytest.mark.browser)
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What has begun is never cut short; what would begin too late is left out."""
    outer = item.get_closest_marker("slow") or item.get_closest_marker("browser")
    limits = _LIMITS if item.get_closest_marker("further") else _LIMITS[:1]
    if outer and time.time() > min(float(os.environ.get(name, "inf")) for name in limits):
        pytest.skip(_NO_TIME)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Lines that tests have to say at the end, and what was left out for want of time."""
    late = [report.nodeid for report in terminalreporter.stats.get("skipped", ()) if _late(report)]
    if late:
        terminalreporter.write_sep("-", f"{len(late)} tests {_NO_TIME}")
        for nodeid in sorted(late):
            terminalreporter.write_line(nodeid)
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, lines in getattr(report, "user_properties", ()):
                if name == SUMMARY and report.when == "call":
                    terminalreporter.write_sep("-", "promises")
                    for line in lines:
                        terminalreporter.write_line(line)


def pytest_unconfigure(config: pytest.Config) -> None:
    for folder in _own_state:
        shutil.rmtree(folder, ignore_errors=True)


def _all_required() -> bool:
    return os.environ.get("GRADER_REQUIRE_ALL", "") not in ("", "0")


def _late(report: pytest.TestReport) -> bool:
    return report.skipped and _NO_TIME in _reason(report.longrepr)


def _reason(longrepr: object) -> str:
    return str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    # An expected failure is reported as a skip, too; it is none.
    excused = hasattr(report, "wasxfail") or any(map(item.get_closest_marker, _MAY_BE_ABSENT))
    excused = excused or _late(report)
    if report.skipped and not excused and _all_required():
        report.outcome = "failed"
        report.longrepr = f"{_REQUIRED}, but this test was skipped: {_reason(report.longrepr)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped and _all_required():
        report.outcome = "failed"
        report.longrepr = f"{_REQUIRED}, but this module was skipped: {_reason(report.longrepr)}"
    return report


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def _compiled_statements() -> Generator[None]:
    """What SQLAlchemy compiles for one database serves all of its kind: tests open thousands of engines."""
    from grader.store import database

    opened, first = database._sqlite_engine, list[Any]()

    def open_alike(url: Any) -> Any:
        engine: Any = opened(url)
        if not first:
            engine._compiled_cache.capacity = 5000
            first.append(engine)
        engine.dialect, engine._compiled_cache = first[0].dialect, first[0]._compiled_cache
        return engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_sqlite_engine", open_alike)
        yield


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory, _compiled_statements: None) -> Path:
    """A database file with our tables in it, to be copied: to make them takes a second."""
    from grader.store import schema
    from grader.store.database import Store

    path = tmp_path_factory.mktemp("database") / "empty.db"
    store = Store(f"sqlite:///{path}")
    schema.upgrade(store)
    with store.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    return path


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a real Chromium or Chrome."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    pytest.skip("no Chromium found; `apt-get install chromium` brings one")


@pytest.fixture(scope="session")
def docker_images() -> dict[str, str]:
    """Names of the images that grading in containers needs, by kind: an engine has them, of this very version."""
    from grader.errors import InfraError
    from grader.run import images

    try:
        missing = images.missing()
    except InfraError as error:
        pytest.skip(f"{error} Then run `make images`.")
    if missing:
        pytest.skip(f"{' and '.join(missing)} not there; `make images` builds what is missing")
    return {kind: images.image_name(kind) for kind in images.NEEDED_TO_GRADE}
