"""Judge a multi-GPU training script by what it did, not by what it says.

The whole flow, top to bottom; each line is one room of this package:

    catalog    finds the task and the submission
    checks     reads the submission's text (nothing is executed)            -> source findings
    run        launches it in a runtime, under `launch` with `probe` inside -> RunRecord + Trace
    checks     compares what the ranks did                                  -> trace findings
    evaluate   scores the weights it left, in a process without its code    -> Evaluation, points
    pipeline   puts these together                                          -> Grade
    report     says it to people and machines                               -> terminal, HTML, JSON

Running and judging are two steps with files between them, so a stored run can be judged again
without running anything. Imports point down this list only.
"""

__version__ = "0.1.0"
