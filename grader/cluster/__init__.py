"""Clusters: workers as jobs of a batch system, as many as the queue needs.

    worker_job    a worker as a job: what it is for, and how far it is
    slurm         Slurm's own commands: which of our jobs there are, submit one, cancel one that waits
    plan          which jobs to submit and which to cancel; pure
    service_queue what a service wants of workers, asked over HTTP
    job_script    the batch script, from a template
    feed          looks again and again, and does what the plan says: `grader slurm feed`

Nothing is remembered between two looks: the queue and Slurm know everything, so that a feed that was killed, or that
could not reach one of them, goes on where it was.
"""
