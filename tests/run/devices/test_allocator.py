"""The allocator under any mixture of hosts, holders and requests: nothing twice, nothing in part, nobody for ever."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from grader.run.devices.allocator import AllocationPlan, AllocationRequest, DeviceHost, DevicesInUse, plan
from grader.run.devices.hardware import Core, Gpu
from tests.simulated_hosts import Arrival, simulate, simulated_host

NOW_S = 1000.0


@st.composite
def hosts(draw: st.DrawFn, name: str = "a") -> DeviceHost:
    """Up to eight GPUs on up to two nodes, up to eight cores of one or two threads, any part of them in use."""
    threads = draw(st.integers(1, 2))
    num_cores = draw(st.integers(1, 8))
    empty = DeviceHost(
        tuple(
            Gpu(f"GPU-{name}-{i}", i, numa_node=draw(st.sampled_from([None, 0, 1])))
            for i in range(draw(st.integers(0, 8)))
        ),
        tuple(Core(tuple(range(i, num_cores * threads, num_cores)), i % 2) for i in range(num_cores)),
    )
    running = []
    gpus, cores = empty.free()
    while (gpus or cores) and draw(st.booleans()):
        took_gpus = draw(st.lists(st.sampled_from(gpus), unique=True, max_size=4)) if gpus else []
        took_cores = draw(st.lists(st.sampled_from(cores), unique=True, max_size=4)) if cores else []
        cpus = tuple(cpu for core in took_cores for cpu in core.cpus)
        # Some are over their limit already.
        until_s = NOW_S + draw(st.integers(-5, 30))
        running.append(DevicesInUse(tuple(gpu.uuid for gpu in took_gpus), cpus, until_s))
        gpus = [gpu for gpu in gpus if gpu not in took_gpus]
        cores = [core for core in cores if core not in took_cores]
    return replace(empty, running=tuple(running))


@st.composite
def fleets(draw: st.DrawFn) -> tuple[DeviceHost, ...]:
    return tuple(draw(hosts(name)) for name in "abc"[: draw(st.integers(1, 3))])


@st.composite
def queues(draw: st.DrawFn) -> tuple[AllocationRequest, ...]:
    needs = st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(any)
    asked = draw(st.lists(st.tuples(needs, st.integers(1, 20)), max_size=10))
    return tuple(AllocationRequest(n, gpus, cores, wall) for n, ((gpus, cores), wall) in enumerate(asked))


def fits(host: DeviceHost, request: AllocationRequest) -> bool:
    return request.num_gpus <= len(host.gpus) and request.num_cores <= len(host.cores)


@given(fleets(), queues())
def test_whole_sets_of_free_devices_of_one_host_none_twice(
    fleet: tuple[DeviceHost, ...], queue: tuple[AllocationRequest, ...]
) -> None:
    asked = {request.ticket: request for request in queue}
    taken: Counter[tuple[int, object]] = Counter()
    for place, host in enumerate(fleet):
        taken.update((place, device) for one in host.running for device in (*one.gpus, *one.cpus))
    planned = plan(fleet, queue, NOW_S)
    assert len({start.ticket for start in planned.starts}) == len(planned.starts)
    for start in planned.starts:
        request, host = asked[start.ticket], fleet[start.host]
        assert (len(start.gpus), len(start.cores)) == (request.num_gpus, request.num_cores)
        assert set(start.gpus) <= set(host.gpus)
        assert set(start.cores) <= set(host.cores)
        taken.update((start.host, gpu.uuid) for gpu in start.gpus)
        taken.update((start.host, cpu) for core in start.cores for cpu in core.cpus)
    assert not taken or max(taken.values()) == 1


@given(fleets(), queues())
def test_everybody_whom_some_host_could_serve_is_promised_a_time_and_nobody_else(
    fleet: tuple[DeviceHost, ...], queue: tuple[AllocationRequest, ...]
) -> None:
    planned = plan(fleet, queue, NOW_S)
    possible = {request.ticket for request in queue if any(fits(host, request) for host in fleet)}
    assert set(planned.promises) == possible
    now = {ticket for ticket, at_s in planned.promises.items() if at_s == NOW_S}
    assert {start.ticket for start in planned.starts} == now


@given(fleets(), queues(), st.integers(0, 10))
def test_no_later_arrival_puts_off_a_promise_or_changes_a_set(
    fleet: tuple[DeviceHost, ...], queue: tuple[AllocationRequest, ...], num: int
) -> None:
    alone, among_all = plan(fleet, queue[:num], NOW_S), plan(fleet, queue, NOW_S)
    assert among_all.promises | alone.promises == among_all.promises
    assert among_all.starts[: len(alone.starts)] == alone.starts


@given(fleets(), queues(), st.randoms(use_true_random=False))
def test_the_order_in_which_devices_are_listed_changes_nothing(
    fleet: tuple[DeviceHost, ...], queue: tuple[AllocationRequest, ...], random: object
) -> None:
    def shuffled(host: DeviceHost) -> DeviceHost:
        gpus, cores, running = list(host.gpus), list(host.cores), list(host.running)
        for some in (gpus, cores, running):
            random.shuffle(some)  # type: ignore[attr-defined]
        return DeviceHost(tuple(gpus), tuple(cores), tuple(running))

    assert plan([shuffled(host) for host in fleet], queue, NOW_S) == plan(fleet, queue, NOW_S)


@given(fleets(), queues())
def test_first_come_first_served_among_equals(
    fleet: tuple[DeviceHost, ...], queue: tuple[AllocationRequest, ...]
) -> None:
    promises = plan(fleet, queue, NOW_S).promises
    last: dict[tuple[int, int, float], float] = {}
    for request in queue:
        if request.ticket in promises:
            kind = (request.num_gpus, request.num_cores, request.wall_s)
            assert promises[request.ticket] >= last.get(kind, NOW_S)
            last[kind] = promises[request.ticket]


@given(hosts(), queues())
def test_whoever_is_left_waiting_would_put_off_somebody_who_came_before(
    host: DeviceHost, queue: tuple[AllocationRequest, ...]
) -> None:
    planned = plan([host], queue, NOW_S)
    started = {start.ticket for start in planned.starts}
    gpus, cores = host.free()
    for start in planned.starts:
        gpus = [gpu for gpu in gpus if gpu not in start.gpus]
        cores = [core for core in cores if core not in start.cores]
    for place, request in enumerate(queue):
        if request.ticket in started or request.num_gpus > len(gpus) or request.num_cores > len(cores):
            continue
        # There is room for it right now. What if it simply went first?
        first = plan([host], (request, *queue[:place]), NOW_S).promises
        assert any(first[r.ticket] > planned.promises[r.ticket] for r in queue[:place] if fits(host, r))


@given(fleets(), queues())
def test_promises_hold_when_everybody_takes_as_long_as_allowed(
    fleet: tuple[DeviceHost, ...], queue: tuple[AllocationRequest, ...]
) -> None:
    on_time = [
        replace(h, running=tuple(replace(r, until_s=max(r.until_s, NOW_S + 1)) for r in h.running))
        for h in fleet
    ]
    promised = plan(on_time, queue, NOW_S).promises
    waiting, now_s, started = list(queue), NOW_S, {}
    while True:
        planned: AllocationPlan = plan(on_time, waiting, now_s)
        asked = {request.ticket: request for request in waiting}
        for start in planned.starts:
            started[start.ticket] = now_s
            host, cpus = on_time[start.host], tuple(cpu for core in start.cores for cpu in core.cpus)
            running = DevicesInUse(
                tuple(g.uuid for g in start.gpus), cpus, now_s + asked[start.ticket].wall_s
            )
            on_time[start.host] = replace(host, running=(*host.running, running))
        waiting = [request for request in waiting if request.ticket not in started]
        ends = [one.until_s for host in on_time for one in host.running]
        if not ends:
            break
        now_s = min(ends)
        on_time = [replace(h, running=tuple(r for r in h.running if r.until_s > now_s)) for h in on_time]
    assert started == promised


@st.composite
def streams(draw: st.DrawFn) -> list[Arrival]:
    """One that wants everything, somewhere in a stream of anything that comes at any pace."""
    arrivals, at_s = [], 0.0
    wide_at = draw(st.integers(0, 30))
    for number in range(draw(st.integers(wide_at + 1, wide_at + 40))):
        at_s += draw(st.integers(0, 10))
        wall_s = draw(st.integers(1, 30))
        width = 8 if number == wide_at else draw(st.sampled_from([1, 1, 1, 2, 4]))
        seconds = wall_s * draw(st.sampled_from([0.1, 0.5, 0.9, 1.0]))
        arrivals.append(Arrival(at_s, width, width, wall_s, seconds))
    return arrivals


@given(streams(), st.integers(1, 2))
def test_nobody_starves_and_every_device_comes_back(arrivals: list[Arrival], num_hosts: int) -> None:
    longest_s = max(arrival.wall_s for arrival in arrivals)
    machines = [simulated_host(f"{h}", num_cores=8) for h in range(num_hosts)]
    # The simulation itself insists that everybody is served and that in the end nothing is in use.
    for placed in simulate(machines, arrivals):
        assert placed.start_s - placed.arrival.at_s <= (placed.num_ahead + 1) * longest_s


def test_a_narrow_one_overtakes_only_where_it_is_done_in_time_or_needs_nothing_of_the_other() -> None:
    host = replace(simulated_host("a", num_cores=8), running=())
    busy = replace(host, running=(DevicesInUse(tuple(g.uuid for g in host.gpus[:6]), (), NOW_S + 10),))
    wide = AllocationRequest(1, 8, 0, 60)
    assert [s.ticket for s in plan([busy], (wide, AllocationRequest(2, 2, 0, 10)), NOW_S).starts] == [2]
    assert plan([busy], (wide, AllocationRequest(2, 2, 0, 10.5)), NOW_S).starts == ()
    # One that needs but half of the host can be joined for any time.
    half = AllocationRequest(1, 4, 0, 60)
    assert [s.ticket for s in plan([busy], (half, AllocationRequest(2, 2, 0, 999)), NOW_S).starts] == [2]


def test_one_over_its_limit_is_expected_back_any_moment() -> None:
    host = simulated_host("a", num_cores=8)
    late = replace(host, running=(DevicesInUse((host.gpus[0].uuid,), (), NOW_S - 500),))
    planned = plan([late], (AllocationRequest(1, 8, 0, 60), AllocationRequest(2, 1, 0, 60)), NOW_S)
    assert planned.starts == ()
    assert NOW_S < planned.promises[1] < NOW_S + 5
