"""Process groups on the CPU (Gloo) in a job of which only some ranks run (`maya run --ranks`).

Executed inside a training process by session/python_hook.cpp, behind absent_store.py; nothing on disk changes. A real
Gloo group connects every member with every other and would wait for the absent ones for ever. Here it is made of the
members that run. Collectives exchange real data among those, and the data of a member that is absent is taken from its
stand-in: the nearest member below it that runs, or else the first.

Torch calls the methods of its ProcessGroup class, so this replaces methods of that class, and only once a group with
absent members exists. Groups whose members all run, and tensors on the device, take torch's own way.
"""

import ctypes
import functools
import os
import sys

maya = ctypes.CDLL(None)  # the preloaded library


class Members:
    """The members of one group: which of them run, and the small Gloo group that connects those."""

    def __init__(self, backend, ranks, rank):
        self.backend, self.size, self.rank = backend, len(ranks), rank
        self.present = [place for place, member in enumerate(ranks) if member in running]
        # For every member, the index in `present` of itself or its stand-in.
        self.stand_in, last = [], 0
        for place in range(self.size):
            if last + 1 < len(self.present) and self.present[last + 1] <= place:
                last += 1
            self.stand_in.append(last)

    def runs(self, place):
        return place in self.present

    def gathered(self, tensor):
        """This tensor of every member that runs."""
        tensor = tensor.detach().contiguous()
        values = [torch.empty_like(tensor) for _ in self.present]
        self.backend.allgather([values], [tensor]).wait()
        return values

    def of_all(self, tensor):
        values = self.gathered(tensor)
        return [values[index] for index in self.stand_in]

    def reduced(self, tensor, op):
        values = self.gathered(tensor)
        counts = [self.stand_in.count(index) for index in range(len(values))]
        known = c10d.ReduceOp
        if op == known.SUM or op == known.AVG:  # not the other way round: only `op` knows how to compare
            total = sum(value * count for value, count in zip(values, counts))
            return total / self.size if op == known.AVG else total
        if op == known.PRODUCT:
            return functools.reduce(torch.mul, [value**count for value, count in zip(values, counts)])
        if op == known.BXOR:  # pairs of equal values cancel out
            values = [value * (count % 2) for value, count in zip(values, counts)]
        for kind, fold in ((known.MIN, torch.minimum), (known.MAX, torch.maximum), (known.BAND, torch.bitwise_and),
                           (known.BOR, torch.bitwise_or), (known.BXOR, torch.bitwise_xor)):
            if op == kind:
                return functools.reduce(fold, values)
        return values[self.stand_in[self.rank]]  # an operation torch has added since


partial = {}  # id of a backend → its Members, which keep it alive


def done(result):
    future = torch.futures.Future()
    future.set_result(result)
    return c10d._create_work_from_future(future)


def option(options, name, otherwise):
    return getattr(options[0], name, otherwise) if options else otherwise


def reduce_op(options, named):
    if "op" in named:
        return named["op"]
    given = options[0] if options else named.get("opts")
    return getattr(given, "reduceOp", given if given is not None else c10d.ReduceOp.SUM)


def root_of(options, named):
    given = options[0] if options else named.get("opts", named.get("root", 0))
    return given if isinstance(given, int) else given.rootRank


def as_list(tensors):
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def allreduce(group, tensors, *options, **named):
    tensors = as_list(tensors)
    for tensor in tensors:
        tensor.copy_(group.reduced(tensor, reduce_op(options, named)))
    return done(tensors)


def broadcast(group, tensors, *options, **named):
    tensors = as_list(tensors)
    root = group.stand_in[root_of(options, named)]
    for tensor in tensors:
        tensor.copy_(group.gathered(tensor)[root])
    return done(tensors)


def reduce(group, tensors, *options, **named):
    tensors = as_list(tensors)
    for tensor in tensors:
        value = group.reduced(tensor, reduce_op(options, named))
        if root_of(options, named) == group.rank:
            tensor.copy_(value)
    return done(tensors)


def allgather(group, outputs, inputs, *options, **named):
    if isinstance(inputs, torch.Tensor):
        outputs, inputs = [outputs], [inputs]
    for own, tensor in zip(outputs, inputs):
        for out, value in zip(own, group.of_all(tensor)):
            out.copy_(value.view(out.shape))
    return done(outputs)


def allgather_single(group, output, tensor, *options, **named):
    output.copy_(torch.cat([value.reshape(-1) for value in group.of_all(tensor)]).view(output.shape))
    return done([output])


def allgather_coalesced(group, outputs, inputs, *options, **named):
    for place, tensor in enumerate(inputs):
        for own, value in zip(outputs, group.of_all(tensor)):
            own[place].copy_(value)
    return done(outputs)


def gather(group, outputs, inputs, *options, **named):
    values = group.of_all(as_list(inputs)[0])
    if root_of(options, named) == group.rank and outputs:
        for out, value in zip(outputs[0] if isinstance(outputs[0], (list, tuple)) else outputs, values):
            out.copy_(value)
    return done(outputs)


def gather_single(group, output, tensor, *options, **named):
    values = group.of_all(tensor)
    if root_of(options, named) == group.rank:
        output.copy_(torch.cat([value.reshape(-1) for value in values]).view(output.shape))
    return done([output])


def scatter(group, outputs, inputs, *options, **named):
    root, out = root_of(options, named), as_list(outputs)[0]
    if group.runs(root):
        if root == group.rank:
            parts = inputs[0] if isinstance(inputs[0], (list, tuple)) else inputs
            whole = torch.stack([part.reshape(-1) for part in parts])
        else:
            whole = torch.empty(group.size, out.numel(), dtype=out.dtype)
        out.copy_(group.gathered(whole)[group.present.index(root)][group.rank].view(out.shape))
    return done(outputs)


def reduce_scatter(group, outputs, inputs, *options, **named):
    if isinstance(outputs, torch.Tensor):
        outputs, inputs = [outputs], [inputs]
    for out, parts in zip(outputs, inputs):
        whole = group.reduced(torch.stack([part.reshape(-1) for part in parts]), reduce_op(options, named))
        out.copy_(whole[group.rank].view(out.shape))
    return done(outputs)


def reduce_scatter_single(group, output, tensor, *options, **named):
    whole = group.reduced(tensor, reduce_op(options, named))
    output.copy_(whole.reshape(group.size, -1)[group.rank].view(output.shape))
    return done([output])


def exchanged(group, outputs, inputs):
    """All to all of tensors that may differ in size; an absent member sends what it would be sent."""
    works, received = [], []
    for index, place in enumerate(group.present):
        if place == group.rank:
            continue
        buffer = torch.empty_like(outputs[place], memory_format=torch.contiguous_format)
        received.append((place, buffer))
        works.append(group.backend.send([inputs[place].detach().contiguous()], index, 0))
        works.append(group.backend.recv([buffer], index, 0))
    for work in works:
        work.wait()
    for place in range(group.size):
        if place == group.rank or not group.runs(place):
            out, own = outputs[place].view(-1), inputs[place].reshape(-1)
            count = min(out.numel(), own.numel())
            out[:count] = own[:count]
            out[count:] = 0
    for place, buffer in received:
        outputs[place].copy_(buffer)
    return done(outputs)


def alltoall(group, outputs, inputs, *options, **named):
    return exchanged(group, outputs, inputs)


def alltoall_single(group, output, tensor, out_sizes=None, in_sizes=None, *options, **named):
    def parts(whole, sizes):
        return list(whole.split(list(sizes)) if sizes else whole.chunk(group.size))

    exchanged(group, parts(output, out_sizes), parts(tensor, in_sizes))
    return done([output])


def send(group, tensors, peer, tag=0, *options, **named):
    if not group.runs(peer):
        return done(tensors)
    return group.backend.send(tensors, group.present.index(peer), tag)


def recv(group, tensors, peer, tag=0, *options, **named):
    if not group.runs(peer):
        return done(tensors)
    return group.backend.recv(tensors, group.present.index(peer), tag)


def each(collective):
    def coalesced(group, outputs, inputs, *options, **named):
        for out, tensor in zip(outputs, inputs):
            collective(group, out, tensor, *options, **named)
        return done(outputs)

    return coalesced


def barrier(group, *options, **named):
    group.backend.barrier().wait()
    return done([])


# Methods of ProcessGroup by all the names they have had.
COLLECTIVES = {
    "allreduce": allreduce, "allreduce_coalesced": allreduce, "broadcast": broadcast, "reduce": reduce,
    "allgather": allgather, "_allgather_base": allgather_single, "all_gather_single": allgather_single,
    "allgather_coalesced": allgather_coalesced, "allgather_into_tensor_coalesced": each(allgather_single),
    "all_gather_single_coalesced": each(allgather_single), "gather": gather, "gather_single": gather_single,
    "gather_into_tensor": gather_single,
    "scatter": scatter, "reduce_scatter": reduce_scatter, "_reduce_scatter_base": reduce_scatter_single,
    "reduce_scatter_single": reduce_scatter_single, "reduce_scatter_tensor_coalesced": each(reduce_scatter_single),
    "reduce_scatter_single_coalesced": each(reduce_scatter_single), "alltoall": alltoall,
    "alltoall_base": alltoall_single, "all_to_all_single": alltoall_single, "send": send, "recv": recv,
}
BARRIERS = ("barrier", "monitored_barrier")


def first_tensor(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            return value
        if isinstance(value, (list, tuple)):
            found = first_tensor(value)
            if found is not None:
                return found
    return None


def members_of(group):
    try:
        return partial.get(id(group._get_backend(torch.device("cpu"))))
    except RuntimeError:  # the group has no back end for the CPU
        return None


def replaced(name, own):
    original = getattr(c10d.ProcessGroup, name)

    @functools.wraps(original, assigned=("__name__", "__doc__"), updated=())
    def collective(self, *values, **named):
        tensor = first_tensor(values) if values else first_tensor(named.values())
        members = members_of(self) if tensor is not None and tensor.device.type == "cpu" else None
        if members is None:
            return original(self, *values, **named)
        with torch.no_grad():
            return own(members, *(values or named.values()), **(named if values else {}))

    setattr(c10d.ProcessGroup, name, collective)


def replaced_barrier(name):
    original = getattr(c10d.ProcessGroup, name)

    @functools.wraps(original, assigned=("__name__", "__doc__"), updated=())
    def meet(self, *values, **named):
        # With a back end for the device as well, the device's is the one that meets.
        only_cpu = all(device.type == "cpu" for device in self._device_types) or name == "monitored_barrier"
        members = members_of(self) if only_cpu or gloo_everywhere(self) else None
        return original(self, *values, **named) if members is None else barrier(members)

    setattr(c10d.ProcessGroup, name, meet)


def replaced_number(name, own):
    """size() and rank(), which newer releases ask of the back end."""
    original = getattr(c10d.ProcessGroup, name)

    @functools.wraps(original, assigned=("__name__", "__doc__"), updated=())
    def number(self):
        members = members_of(self)
        return original(self) if members is None else own(members)

    setattr(c10d.ProcessGroup, name, number)


def gloo_everywhere(group):
    return all(id(group._get_backend(device)) in partial for device in group._device_types)


def replace_collectives():
    if partial:
        return
    for name, own in COLLECTIVES.items():
        if hasattr(c10d.ProcessGroup, name):
            replaced(name, own)
    for name in BARRIERS:
        if hasattr(c10d.ProcessGroup, name):
            replaced_barrier(name)
    replaced_number("size", lambda members: members.size)
    replaced_number("rank", lambda members: members.rank)


def connect_those_that_run():
    connect = c10d.ProcessGroupGloo.__init__

    @functools.wraps(connect, assigned=("__name__", "__doc__"), updated=())
    def made(self, store, rank, size, *rest, **named):
        ranks = ranks_of_group(size)
        if ranks is None or running.issuperset(ranks) or ranks[rank] not in running:
            return connect(self, store, rank, size, *rest, **named)
        members = Members(self, ranks, rank)
        connect(self, c10d.PrefixStore("ranks that run", store), members.present.index(rank), len(members.present),
                *rest, **named)
        replace_collectives()
        partial[id(self)] = members

    c10d.ProcessGroupGloo.__init__ = made


def replace(module, function):
    """Also where it was imported by name: a forked program has torch.distributed before this code runs."""
    name = function.__name__
    original = getattr(module, name)
    for other in list(sys.modules.values()):
        # Not getattr: it would import what some modules load on demand.
        if getattr(other, "__dict__", {}).get(name) is original:
            setattr(other, name, function)


def keep_objects_of_absent_roots(module):
    send = module.broadcast_object_list

    @functools.wraps(send)
    def broadcast_object_list(object_list, src=None, group=None, *rest, **named):
        root = src
        if named.get("group_src") is not None:
            root = module.get_global_rank(group or module._get_default_group(), named["group_src"])
        if (0 if root is None else root) in running:
            return send(object_list, src, group, *rest, **named)
        return None  # what it would send is what the receivers have

    replace(module, broadcast_object_list)


def learn_ranks(module):
    """A rank may be an argument that only this call sees (torch.multiprocessing.spawn)."""
    begin = module.init_process_group

    @functools.wraps(begin)
    def init_process_group(*values, **named):
        given = dict(zip(("backend", "init_method", "timeout", "world_size", "rank"), values), **named)
        rank, world = given.get("rank", -1), given.get("world_size", -1)
        rank = int(os.environ.get("RANK", -1)) if rank in (-1, None) else rank
        world = world_size() if world in (-1, None) else world
        if "ray.train" in sys.modules and rank not in running:
            # Its controller waits for every worker, here and at each report.
            raise RuntimeError(f"rank {rank} does not run (maya run --ranks), and Ray Train waits for every worker: "
                               "use --ranks all")
        if 0 <= rank < world:
            maya.maya_take_rank(rank, world)  # a rank that is absent does not come back
        return begin(*values, **named)

    replace(module, init_process_group)


def prepare(module):
    global torch, c10d
    import torch
    import torch._C._distributed_c10d as c10d

    if hasattr(c10d, "ProcessGroupGloo"):
        connect_those_that_run()
    prepare_store(module)
    keep_objects_of_absent_roots(module)
    learn_ranks(module)


class Finder:
    """Prepares torch's module when it is imported."""

    wanted = "torch.distributed.distributed_c10d"

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != cls.wanted:
            return None
        sys.meta_path.remove(cls)
        import importlib.util

        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            prepare(module)

        spec.loader.exec_module = exec_module
        return spec


if Finder.wanted in sys.modules:
    prepare(sys.modules[Finder.wanted])
else:
    sys.meta_path.insert(0, Finder)
