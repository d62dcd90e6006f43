"""Workers: take attempts from the database one after the other, have them judged, write down how they ended.

    relay      outbox → broker, and the reconciler that sets right what crashes left: `grader relay`
    station    one host's worker, `grader worker`: its slots, its health, its end
    slot       one process of it: woken by a hint, it claims until nothing is left
    judging    one attempt: task, run, reports, files
    pulse      its signs of life; hears that it was cancelled, lost, or took too long
    live       what people see of it meanwhile

A container or process never outlives the slot that started it (it ends with the slot's end of its standard input), so
nothing is ever adopted: what a dead worker left is run again under the next lease, and graded once.
"""
