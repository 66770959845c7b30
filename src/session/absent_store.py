"""The key-value store of a job of which only some ranks run (`maya run --ranks`).

Executed inside a training process, ahead of absent_groups.py and in one namespace with it, with `ranks_that_run` set.
Ranks find each other through the store: they count themselves in, wait for the server, which rank 0 is unless torchrun
has one, and for the id of each communicator, which its first member writes. Nobody waits for an absent rank here.
"""

import functools
import hashlib
import os
import sys

running = frozenset(ranks_that_run)  # noqa: F821


def world_size():
    return int(os.environ.get("WORLD_SIZE", 0))


def ranks_of_group(size):
    """The ranks of the group that torch is making: its own frames have the list, empty for all ranks."""
    frame = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith("torch.distributed"):
            for name in ("global_ranks_in_group", "ranks"):
                ranks = frame.f_locals.get(name)
                if isinstance(ranks, (list, tuple)) and len(ranks) in (0, size):
                    return list(ranks) or list(range(size))
        frame = frame.f_back
    return list(range(size)) if size == world_size() else None


def wait_for_nobody():
    make = c10d.TCPStore.__init__

    @functools.wraps(make, assigned=("__name__", "__doc__"), updated=())
    def made(self, *values, **named):
        if len(values) < 6:  # host, port, world size, is master, timeout, wait for workers
            named["wait_for_workers"] = False
        make(self, *values, **named)

    c10d.TCPStore.__init__ = made


def serve_in_place_of_rank_0():
    """Without torchrun's own server, the first rank that runs is the server."""
    rendezvous = sys.modules.get("torch.distributed.rendezvous")
    make = getattr(rendezvous, "_create_c10d_store", None)
    if make is None or 0 in running:
        return

    @functools.wraps(make)
    def made(host, port, rank, *rest, **named):
        return make(host, port, 0 if rank == min(running) else rank, *rest, **named)

    rendezvous._create_c10d_store = made


def count_those_that_run(module):
    meet = module._store_based_barrier

    @functools.wraps(meet)
    def barrier(rank, store, group_name, rendezvous_count, *rest, **named):
        ranks = ranks_of_group(rendezvous_count)
        if ranks is not None:
            rendezvous_count = sum(member in running for member in ranks)
        return meet(rank, store, group_name, rendezvous_count, *rest, **named)

    module._store_based_barrier = barrier


def roots(size):
    """The places of the members that write an id: one for every 128 members, as torch divides them."""
    per_root = max(1, int(os.environ.get("TORCH_NCCL_RANKS_PER_ROOT", 128)))
    count = -(-size // per_root)
    larger, members = size % count, size // count
    return [index * members + min(index, larger) for index in range(count)]


def id_keys(kind, name, rank, size):
    """The place in the group of each member that writes an id, and the key it writes it to."""
    many = roots(size)
    if kind == "ProcessGroupNCCL2":
        key = f"{name}/nccl_storekey_0"
        return [(0, key)] if len(many) == 1 else [(place, f"{key}_{index}") for index, place in enumerate(many)]
    pairs = [(place, f"{place}:{rank}") for place in range(rank)]  # a message outside a group has its communicator
    return [(0, "0"), *((place, f"UniqueNCCLID:{index}") for index, place in enumerate(many)), *pairs]


def write_ids_of_absent_roots(kind):
    """What a member that runs writes in place of an absent one is the same whoever does it."""
    make = getattr(c10d, kind).__init__

    @functools.wraps(make, assigned=("__name__", "__doc__"), updated=())
    def made(self, store, rank, size, *rest, **named):
        ranks = ranks_of_group(size)
        if ranks is not None and not running.issuperset(ranks):
            name = getattr(rest[0] if rest else named.get("options"), "group_name", "")
            for place, key in id_keys(kind, name, rank, size):
                if ranks[place] not in running:
                    store.set(key, hashlib.shake_128(f"{name} {ranks} {key}".encode()).digest(128))
        make(self, store, rank, size, *rest, **named)

    getattr(c10d, kind).__init__ = made


def prepare_store(module):
    wait_for_nobody()
    serve_in_place_of_rank_0()
    count_those_that_run(module)
    for kind in ("ProcessGroupNCCL", "ProcessGroupNCCL2"):
        if hasattr(c10d, kind):
            write_ids_of_absent_roots(kind)
