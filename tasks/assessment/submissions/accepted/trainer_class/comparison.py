"""The runs that were made before this one, this one, and what can be read in their table."""
import csv
import os

# Runs made before this one on the same machine: ranks, batch of each, peak learning rate, epochs, seconds, accuracy.
RUNS = [
    (1, 64, 0.002, 3, 18.4, 0.393),
    (1, 64, 0.05, 3, 18.1, 0.877),
    (2, 32, 0.05, 3, 10.9, 0.869),
]


def write_comparison(folder, *this_run):
    runs = [*RUNS, this_run]
    best = max(runs, key=lambda run: run[5])
    near = min((run for run in runs if run[5] >= best[5] - 0.01), key=lambda run: run[4])
    epoch = {run: run[4] / run[3] for run in runs}
    alone = min(epoch[run] for run in runs if run[0] == 1)
    together = min((epoch[run] for run in runs if run[0] > 1), default=alone)
    for name, rows in {
        "runs.csv": ["ranks batch_size learning_rate epochs seconds accuracy".split(), *runs],
        "answers.csv": [
            ["most_accurate", "quickest_of_the_best", "speedup"],
            [runs.index(best) + 1, runs.index(near) + 1, alone / together],
        ],
    }.items():
        with open(os.path.join(folder, name), "w", newline="") as file:
            csv.writer(file).writerows(rows)
