"""Workers: take attempts from the database one after the other, have them judged, write down how they ended.

    relay            outbox → broker, and the reconciler that sets right what crashes left: `grader relay`
    supervisor       one host's worker, `grader worker`: starts its processes, replaces them, sees to it that they end
    worker_process   one of them: a Celery worker that processes one attempt at a time, or one that polls
    polling          asks for attempts, for workers without messages
    time_left        what can still be judged before a worker has to have finished
    processor        claims the next attempt, has it run and judged, records how that ended
    coordinator      what a worker asks of the queue: of the database, or over HTTP of the service
    execution        one claimed attempt: task, run, reports, files
    heartbeat        keeps its lease; hears that it was cancelled, lost, or took too long
    live_events      what people see of it meanwhile
    health_reporter  beside them: the host's health, to the database and to Prometheus

A container or process never outlives the worker process that started it (it ends with the end of its standard input),
so nothing is ever adopted: what a dead worker left is run again under the next lease, and graded once.
"""
