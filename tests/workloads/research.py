"""Models of packages that bring their own layers: graphs with pooling, contrastive pairs.

    research.py graphs|clip
"""

import argparse

import torch
import torch.nn.functional as F


def graphs():
    """Top-k pooling: which edges are left is decided on the device, and read."""
    from torch_geometric.data import Batch, Data
    from torch_geometric.nn import GATConv, GraphConv, SAGPooling, TopKPooling, global_mean_pool

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.third = GraphConv(64, 128), GATConv(128, 32, heads=4), GraphConv(128, 128)
            self.pool, self.again = TopKPooling(128, 0.5), SAGPooling(128, 0.5)
            self.head = torch.nn.Linear(128, 4)

        def forward(self, b):
            x = self.first(b.x, b.edge_index).relu()
            x, edges, _, batch, _, _ = self.pool(x, b.edge_index, None, b.batch)
            x = self.second(x, edges).relu()
            x, edges, _, batch, _, _ = self.again(x, edges, None, batch)
            return self.head(global_mean_pool(self.third(x, edges).relu(), batch, 32))

    made = [
        Data(x=torch.randn(40, 64), edge_index=torch.randint(0, 40, (2, 160)), y=torch.tensor([i % 4]))
        for i in range(32)
    ]
    batch = Batch.from_data_list(made).to("cuda")
    return Net().cuda(), lambda m: F.cross_entropy(m(batch), batch.y)


def clip():
    import open_clip
    from open_clip.loss import ClipLoss

    vision = open_clip.CLIPVisionCfg(layers=4, width=256, head_width=64, patch_size=16, image_size=112)
    text = open_clip.CLIPTextCfg(context_length=32, vocab_size=1000, width=256, heads=4, layers=4)
    loss = ClipLoss()
    images, words = torch.randn(32, 3, 112, 112, device="cuda"), torch.randint(0, 1000, (32, 32), device="cuda")
    return open_clip.CLIP(256, vision, text).cuda(), lambda m: loss(*m(images, words))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=["graphs", "clip"])
    model, loss = globals()[parser.parse_args().model]()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(5):
        optimizer.zero_grad()
        value = loss(model)
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        optimizer.step()
        assert torch.isfinite(value)
    print(f"done, {torch.cuda.max_memory_allocated() >> 20} MiB")


if __name__ == "__main__":
    main()
