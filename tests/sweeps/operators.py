"""Every operator of PyTorch's own tests, forward and backward, on a few of its sample inputs."""

import itertools

import torch
from sweep import sweep
from torch.testing._internal.common_methods_invocations import op_db

# What a GPU refuses as well.
REFUSED = {
    "sparse.mm.reduce": "not there for CUDA",
    "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu": "not there for CUDA",
    "_softmax_backward_data": "the sample mixes float and half",
}


def train(op):
    for sample in itertools.islice(op.sample_inputs("cuda", torch.float32, requires_grad=op.supports_autograd), 6):
        result = op(sample.input, *sample.args, **sample.kwargs)
        outputs = result if isinstance(result, (tuple, list)) else [result]
        outputs = [o for o in outputs if torch.is_tensor(o) and o.requires_grad]
        if outputs:
            sum((o.abs() if o.is_complex() else o).float().sum() for o in outputs).backward()


def cases():
    for op in op_db:
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        if torch.float32 in op.supported_dtypes("cuda") and name not in REFUSED:
            yield name, op


sweep("operators", cases(), train)
