"""transformer_xl.py on several GPUs, a batch each: torchrun --nproc-per-node 8 transformer_xl_ddp.py base:32:192"""

from __future__ import annotations

import torch
import transformer_xl

single = transformer_xl.TransformerXL


def several(*sizes):
    return torch.nn.parallel.DistributedDataParallel(single(*sizes).half(), broadcast_buffers=False)


if __name__ == "__main__":
    transformer_xl.TransformerXL = several
    transformer_xl.main()
