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


kept_stores = []  # torch's C++ code holds them, which does not keep their Python part alive


def number_behind(key):
    stem = key.rstrip("0123456789")
    return stem, key[len(stem):]


class Group:
    """Who is who in a group: places are counted within the group, ranks in the job."""

    def __init__(self, ranks, rank):
        self.size, self.own = len(ranks), str(ranks.index(rank))
        self.absent = {str(place) for place, member in enumerate(ranks) if member not in running}

    def comes_last(self, count):
        return count == self.size - len(self.absent)


def answering_store(module, store, ranks, rank):
    """A store in which absent members say what this one says.

    Members of a group exchange data through keys that end in their number (`…/3`): each writes its own and waits for
    the others (symmetric memory exchanges its handles so). A key that ends in the number of an absent member has the
    value that this member wrote to its own variant of the key. A group that was split off has the store of the group
    it came from, with its name in front of the keys.
    """
    whole, said = Group(ranks, rank), {}

    def group_of(key):
        world = module._world
        for group, name in list(world.pg_names.items()):
            if key.startswith(f"{name}/") and group in world.pg_group_ranks:
                return Group(list(world.pg_group_ranks[group]), rank)
        return whole

    def answer(key):
        stem, number = number_behind(key)
        return said.get(stem) if number in group_of(key).absent else None

    class Answering(c10d.Store):
        def set(self, key, value):
            stem, number = number_behind(key)
            if number and number == group_of(key).own:
                said[stem] = value.encode() if isinstance(value, str) else bytes(value)
            store.set(key, value)

        def get(self, key):
            value = answer(key)
            return store.get(key) if value is None or store.check([key]) else value

        def wait(self, keys, *timeout):
            keys = [key for key in keys if answer(key) is None]
            if keys:
                store.wait(keys, *timeout)

        def check(self, keys):
            keys = [key for key in keys if answer(key) is None]
            return not keys or store.check(keys)

        def add(self, key, amount):
            """torch's barrier counts its members: the last one that runs is the last one."""
            count, group = store.add(key, amount), group_of(key)
            return group.size if key.endswith("/num_members") and group.comes_last(count) else count

        def multi_get(self, keys):
            return [self.get(key) for key in keys]

    for name in ("append", "compare_set", "delete_key", "has_extended_api", "multi_set", "num_keys", "set_timeout"):
        if hasattr(store, name):
            setattr(Answering, name, functools.partial(getattr(store, name)))
    made = Answering()
    kept_stores.append(made)
    return made


def answer_in_groups(module):
    make = c10d.ProcessGroup.__init__

    @functools.wraps(make, assigned=("__name__", "__doc__"), updated=())
    def made(self, *values, **named):
        if len(values) == 3 and isinstance(values[0], c10d.Store):
            store, rank, size = values
            ranks = ranks_of_group(size)
            if ranks is not None and not running.issuperset(ranks) and ranks[rank] in running:
                values = (answering_store(module, store, ranks, ranks[rank]), rank, size)
        make(self, *values, **named)

    c10d.ProcessGroup.__init__ = made
    # An absent member seems to have this one's device, which torch takes for a mistake otherwise.
    os.environ.setdefault("TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES", "1")


def prepare_store(module):
    answer_in_groups(module)
    wait_for_nobody()
    serve_in_place_of_rank_0()
    count_those_that_run(module)
    for kind in ("ProcessGroupNCCL", "ProcessGroupNCCL2"):
        if hasattr(c10d, kind):
            write_ids_of_absent_roots(kind)
