"""Judge a multi-GPU training script by what it did, not by what it says.

The whole flow, top to bottom; each line is one room of this package:

    catalog    finds the task and the submission
    run        launches it in a runtime, under `launch` with `probe` inside -> RunRecord, Trace
    evaluate   scores the weights it left, in a process without its code    -> Evaluation
    judging    reads all of that back from files                            -> Evidence
    checks     reads the source, compares what the ranks did                -> findings
    evaluate   holds findings and measures against the rubric               -> points, verdict: Grade
    pipeline   does all of the above for one submission
    report     says it to people and machines                               -> terminal, HTML, JSON

Running and judging are two steps with files between them, so a stored run can be judged again without running
anything. Which room may import which stands in pyproject.toml; docs/words.md has the words that are ours.
"""

__version__ = "0.1.0"
