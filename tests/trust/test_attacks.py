"""Attacks as learners would hand them in: none changes a grade, reaches anything, outlives its time or leaves anything.

Each file below `attacks/` says what must come of it. In `docker` run all but one, which is about `process`.
In `process`, which isolates nothing and says so, only those run that meet something else there: what a run left is
collected and scored with the judge's own rights, beside the judge's own modules and without a container to hold it; and
no container ends the processes of a run, counts their time or limits them.
"""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.trust.attack import Attack, attacks, find
from tests.trust.host import Host
from tests.trust.judges import Judged, Judges

_GRACE_S = 5.0
_CONTROLS = {chr(n) for n in range(32)} - {"\n", "\t"} | {"\x7f", "\u202e", "\u2066"}
# An honest attempt between: after every so many attacks in the same pipeline.
_EVERY = {"process": 11, "docker": 24}


def _cases() -> list[object]:
    found: list[object] = []
    for runtime in ("process", "docker"):
        for attack in attacks():
            if runtime not in attack.runtimes:
                continue
            why = attack.open.get(runtime)
            marks = [pytest.mark.xfail(strict=True, reason=why)] if why else []
            found.append(pytest.param(runtime, attack, id=f"{runtime}-{attack.name}", marks=marks))
    return found


_seen = {"process": 0, "docker": 0}


@pytest.mark.slow
@pytest.mark.parametrize(("runtime", "attack"), _cases(), indirect=["runtime"])
def test_attack(runtime: str, attack: Attack, judges: Judges, unpickled: Path) -> None:
    if attack.beside:
        judged, honest = judges.judge_beside_honest(runtime, attack)
        assert honest.attempt.grade.verdict == "accepted", honest.attempt.grade.verdict_reason
    else:
        judged = judges.judge(runtime, attack)
    assert not unpickled.exists()
    _look_at_files(judged, attack)
    _look_at_time(judged, attack)
    _look_at_grade(judged, attack)
    _seen[runtime] += 1
    if _seen[runtime] % _EVERY[runtime] == 0:
        honest = judges.judge(runtime, find("00_honest"))
        assert honest.attempt.grade.verdict == "accepted", honest.attempt.grade.verdict_reason


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["docker"], indirect=True)
def test_what_one_leaves_while_it_runs_the_other_does_not_find(runtime: str, judges: Judges) -> None:
    looking, leaving = judges.judge_both(
        runtime, find("13d_looks_again_and_again"), find("13c_keeps_canaries_alive")
    )
    began, ended = _span(looking)
    there_from, there_to = _span(leaving)
    assert "ATTACK canaries are out" in leaving.printed
    assert '"reached": []' in looking.printed
    assert '"reached": ["' not in looking.printed
    # Both were there at the same time: the looking one began while the other still ran, or the other way round.
    assert max(began, there_from) < min(ended, there_to)


@pytest.mark.slow
def test_nothing_is_left_on_this_machine(judges: Judges, host: Host) -> None:
    seen = host.new()
    # Warm processes and containers: who cannot see them now would not see them left behind either.
    assert "processes" in seen or not judges.open
    assert "containers" in seen or "docker" not in judges.open
    judges.close()
    assert host.left() == {}


def test_every_row_of_the_threats_has_an_attack() -> None:
    rows = {attack.row for attack in attacks()}
    wanted = {str(n) for n in (*range(1, 24), *range(29, 35), *range(36, 41))}
    assert wanted - rows == set()
    assert sum(attack.row == "own" for attack in attacks()) >= 20


def _look_at_grade(judged: Judged, attack: Attack) -> None:
    grade, record = judged.attempt.grade, judged.attempt.record
    told = f"{grade.verdict}: {grade.verdict_reason}\n{grade.findings}\n{judged.printed[-3000:]}"
    assert grade.verdict in attack.verdicts, told
    if attack.endings:
        assert record is not None
        assert record.ending in attack.endings, told
    assert set(attack.codes) <= {finding.code for finding in grade.findings}, told
    for text in attack.must_print:
        assert text in judged.printed, told
    for text in attack.must_not_print:
        assert text not in judged.printed, told
    for text in attack.says:
        assert text in judged.said, judged.said
    if attack.min_cpu_s:
        assert record is not None
        assert sum(rank.cpu_s for rank in record.ranks) >= attack.min_cpu_s, record.ranks


def _look_at_time(judged: Judged, attack: Attack) -> None:
    record = judged.attempt.record
    assert record is not None
    assert record.wall_s <= attack.wall_s + _GRACE_S
    assert judged.run_s <= attack.wall_s + _GRACE_S


def _look_at_files(judged: Judged, attack: Attack) -> None:
    """Whatever it did: logs are capped and plain, outputs plain files, the grade can be stored anywhere."""
    workspace, task = judged.workspace, judged.attempt.task
    limits = task.profiles[0].limits
    for log in (workspace.root / "logs").iterdir():
        assert log.stat().st_size <= limits.log_bytes + 200, log
        assert not _CONTROLS & set(log.read_text(encoding="utf-8"))
    total = 0
    for path in workspace.outputs.rglob("*"):
        mode = path.lstat().st_mode
        assert stat.S_ISREG(mode) or stat.S_ISDIR(mode), path
        assert path.name.isprintable()
        total += path.stat().st_size
    assert total <= limits.output_bytes
    for written in (workspace.record, workspace.evaluation):
        if written.exists():
            document = json.dumps(
                json.loads(written.read_text(encoding="utf-8"), parse_constant=_refuse), ensure_ascii=False
            )
            assert "\\u0000" not in document
            document.encode("utf-8")
    for streams in judged.attempt.logs:
        assert "\0" not in str(streams)


def _refuse(constant: str) -> object:
    raise AssertionError(f"{constant} is no number that a database takes")


def _span(judged: Judged) -> tuple[float, float]:
    record = judged.attempt.record
    assert record is not None
    began = float(record.environment["started_unix_s"])
    return began, began + record.wall_s
