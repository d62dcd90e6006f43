"""`grader slurm feed` against a real Slurm: as many jobs wait as the queue needs, and not one more."""

from __future__ import annotations

from grader.store.attempts import attempt_endings
from tests.cluster.slurm_site import SLEEPER, SlurmSite
from tests.worker.rig import wait_until


def test_it_submits_what_is_missing_and_cancels_what_is_not_needed(site: SlurmSite) -> None:
    two, four = site.wanting("gpu2", 3), site.wanting("gpu4", 2)
    options = ("--command", SLEEPER, "--most", "4")
    before = site.look("--dry-run", *options)
    assert [need for _job, need in before["submitted"]].count("gpu2") == 2
    assert "#SBATCH --gres=gpu:4" in before["scripts"]["gpu4"]
    assert not site.cluster.states(), "a dry run submits nothing"

    # Nobody starts, so that all of them wait.
    site.cluster.pause()
    first = site.look(*options)
    names = [words[1] for words in site.cluster.jobs("%i %j %b")]
    assert sorted(names) == ["grader-gpu2", "grader-gpu2", "grader-gpu4", "grader-gpu4"], (
        "both get half of the room"
    )
    assert {words[2] for words in site.cluster.jobs("%i %j %b")} == {"gres:gpu:2", "gres:gpu:4"}
    # Another process, as after a restart: it knows its own jobs again.
    assert site.look(*options)["submitted"] == []
    assert site.look(*options, "--prefix", "other", "--dry-run")["submitted"], (
        "those of another service are not ours"
    )

    for attempt_id in (*two[1:], *four):
        attempt_endings.cancel(site.rig.store, attempt_id, actor_id=None)
    cancelled = [job["job_id"] for job in site.look(*options)["cancelled"]]
    assert len(cancelled) == 3
    (left,) = [job for job, state in site.cluster.states().items() if state == "PENDING"]
    assert int(left) == min(job for job, need in first["submitted"] if need == "gpu2"), (
        "the oldest keeps its place"
    )


def test_a_job_that_runs_is_counted_and_never_cancelled(site: SlurmSite) -> None:
    waiting = site.wanting("gpu1", 2)
    options = ("--command", SLEEPER, "--most", "4")
    site.look(*options)
    wait_until(lambda: list(site.cluster.states().values()) == ["RUNNING"] * 2, "both run")
    again = site.look(*options)
    assert (again["submitted"], again["cancelled"]) == ([], []), "a worker is there for each"
    for attempt_id in waiting:
        attempt_endings.cancel(site.rig.store, attempt_id, actor_id=None)
    assert site.look(*options)["cancelled"] == []
    assert list(site.cluster.states().values()) == ["RUNNING"] * 2


def test_slurm_away_is_waited_for(site: SlurmSite) -> None:
    site.wanting("gpu1")
    site.cluster.stop("slurmctld")
    site.feed("--command", SLEEPER)
    wait_until(lambda: "Slurm can't be asked" in site.rig.logs(), "it says so")
    site.cluster.start_controller()
    wait_until(lambda: "RUNNING" in site.cluster.states().values(), f"a job runs: {site.logs()}")


def test_what_slurm_refuses_and_what_fails_is_said(site: SlurmSite) -> None:
    site.wanting("gpu8")
    site.wanting("gpu1")
    seen = site.look("--command", "false #", code=4)
    assert [need for _job, need in seen["submitted"]] == ["gpu1"], "the others get theirs"
    (problem,) = seen["problems"]
    assert "refuses a job for gpu8" in problem
    for _ in range(2):
        wait_until(lambda: set(site.cluster.states().values()) == {"FAILED"}, "they fail")
        site.look("--command", "false #", code=4)
    wait_until(lambda: set(site.cluster.states().values()) == {"FAILED"}, "they fail")
    last = site.look("--command", "false #", code=4)
    assert last["submitted"] == []
    assert any("Jobs for gpu1 fail" in problem for problem in last["problems"])


def test_a_template_of_ones_own(site: SlurmSite) -> None:
    template = site.rig.folder / "own.sh.j2"
    template.write_text("#!/bin/bash\n#SBATCH --gres=gpu:{{ num_gpus }}\nexec sleep 600\n")
    site.wanting("gpu3")
    site.look("--template", str(template), "--sbatch=--comment=ours")
    assert site.cluster.jobs("%b %k") == [["gres:gpu:3", "ours"]]
    template.write_text("{{ gpus }}")
    site.look("--template", str(template), code=2)
