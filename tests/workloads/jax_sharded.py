"""JAX on every GPU of a machine from one process: the batch is split, XLA puts in the all-reduces.

    jax_sharded.py --devices 4
"""

from __future__ import annotations

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

parser = argparse.ArgumentParser()
parser.add_argument("--devices", type=int, default=4)
args = parser.parse_args()


def loss(parameters, tokens):
    x = parameters["embed"][tokens]
    batch, length, width = x.shape
    for w in parameters["layers"]:
        q, k, v = jnp.split(x @ w["qkv"], 3, axis=-1)
        q, k, v = (a.reshape(batch, length, -1, 64) for a in (q, k, v))
        x = x + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(batch, length, width) @ w["out"]
        x = x + jax.nn.gelu(x @ w["up"]) @ w["down"]
    logits = (x @ parameters["embed"].T).astype(jnp.float32)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits[:, :-1]), tokens[:, 1:, None], axis=-1))


def step(parameters, momenta, tokens):
    gradients = jax.grad(loss)(parameters, tokens)
    momenta = jax.tree.map(lambda m, g: 0.9 * m + g, momenta, gradients)
    return jax.tree.map(lambda p, m: p - 1e-3 * m, parameters, momenta), momenta


def main() -> None:
    devices = jax.devices()[: args.devices]
    assert len(devices) == args.devices and devices[0].platform == "gpu", devices
    mesh = Mesh(np.array(devices), ("data",))
    everywhere, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    width, layers, vocabulary = 512, 2, 4096
    parameters = {"embed": jnp.full((vocabulary, width), 0.01, jnp.bfloat16),
                  "layers": [{"qkv": jnp.full((width, 3 * width), 0.01, jnp.bfloat16),
                              "out": jnp.full((width, width), 0.01, jnp.bfloat16),
                              "up": jnp.full((width, 4 * width), 0.01, jnp.bfloat16),
                              "down": jnp.full((4 * width, width), 0.01, jnp.bfloat16)} for _ in range(layers)]}
    parameters = jax.device_put(parameters, everywhere)
    momenta = jax.device_put(jax.tree.map(jnp.zeros_like, parameters), everywhere)
    tokens = jax.device_put(np.zeros((8 * args.devices, 512), np.int32), split)
    update = jax.jit(step, donate_argnums=(0, 1))
    for _ in range(60):
        parameters, momenta = update(parameters, momenta, tokens)
    jax.block_until_ready(parameters)
    print("done", flush=True)


if __name__ == "__main__":
    main()
