"""What comes back of a run: logs that are capped and safe, signs of life, plain files."""

from __future__ import annotations

from typing import Any

from grader.run.script_runs import RunScript


class OutputConformance:
    """What ranks print and leave."""

    def test_a_flood_is_capped_marked_and_does_not_block_the_script(self, run: RunScript) -> None:
        ran = run(
            """
            import sys
            print("first line")
            for _ in range(300):
                sys.stdout.write("x" * 9_999 + "\\n")
            print("last line")
            sys.exit(4)
            """,
            nproc_per_node=1,
        )
        rank = ran.record.ranks[0]
        assert rank.exit_code == 4
        assert rank.stdout_bytes == 3_000_021
        assert rank.stdout_lines == 302
        assert rank.output_cut
        text = ran.out()
        assert len(text) < 70_000
        assert text.startswith("first line\n")
        assert text.endswith("last line\n")
        assert "bytes cut here" in text

    def test_logs_are_safe_text(self, run: RunScript) -> None:
        ran = run(
            r"""
            import os
            os.write(1, b"nul \x00 bell \x07 \xff red \x1b[31mtext\x1b[0m \x1b]0;title\x07end\n")
            os.write(1, "bidi \u202e ende \u00e9\n".encode())
            os.write(1, b"10%\r20%\r\ndone")
            """,
            nproc_per_node=1,
        )
        bad = "\ufffd"
        assert ran.out() == f"nul {bad} bell {bad} {bad} red text end\nbidi {bad} ende é\n10%\n20%\ndone"
        assert ran.record.ranks[0].stdout_lines == 4

    def test_progress_tells_what_rank_0_printed_last(self, run: RunScript) -> None:
        ran = run("import time; print('epoch 1'); time.sleep(1.3)")
        assert "epoch 1" in {progress.line for progress in ran.progress}
        assert [progress.phase for progress in ran.progress] == ["run"] * len(ran.progress)
        assert all(len(progress.steps) == 2 for progress in ran.progress)

    def test_only_plain_files_come_back_and_the_rest_is_listed_safely(self, run: RunScript) -> None:
        ran = run(
            """
            import os
            os.chdir(os.environ["OUTPUT_DIR"])
            open("model.pt", "w").write("weights")
            os.makedirs("deep/er")
            open("deep/er/log.txt", "w").write("log")
            os.symlink("/etc/passwd", "passwd")
            os.symlink("/etc", "folder")
            os.symlink("nowhere", "dangling")
            os.mkfifo("pipe")
            open("twin", "w").write("x"); os.link("twin", "twin2")
            open("new\\nline", "w").write("x")
            open(b"bad\\xff", "w").write("x")
            with open("sparse", "wb") as file:
                file.truncate(900 << 20)
            """,
            nproc_per_node=1,
        )
        assert ran.exit_codes == [0], ran.err()
        assert [(file.path, file.size_bytes) for file in ran.record.outputs] == [
            ("deep/er/log.txt", 3),
            ("model.pt", 7),
        ]
        kept = sorted(str(p.relative_to(ran.workspace.outputs)) for p in ran.workspace.outputs.rglob("*"))
        assert kept == ["deep", "deep/er", "deep/er/log.txt", "model.pt"]
        refused: Any = dict(ran.record.environment["refused_outputs"])
        assert refused.keys() == {
            *("passwd", "folder", "dangling", "pipe", "twin", "twin2", "sparse"),
            *("new\\nline", "bad\\udcff"),
        }
        assert refused["passwd"] == "it is a symbolic link"
        assert refused["pipe"] == "it is not a plain file"

    def test_one_run_finds_nothing_of_the_run_before(self, run: RunScript) -> None:
        script = """
            import os
            print(os.listdir(os.environ["OUTPUT_DIR"]), os.path.exists("mark"), os.listdir(os.environ["TMPDIR"]))
            for path in ("mark", os.environ["OUTPUT_DIR"] + "/mark", os.environ["TMPDIR"] + "/mark"):
                open(path, "w").write("here")
        """
        run(script, nproc_per_node=1)
        assert run(script, nproc_per_node=1).out() == "[] False []\n"
