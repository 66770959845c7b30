"""A JAX training step on its CUDA plug-in: jit, gradients, Adam by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def loss(parameters, x, y):
    for w in parameters[:-1]:
        x = jax.nn.gelu(x @ w)
    return jnp.mean(jnp.square((x @ parameters[-1] - y).astype(jnp.float32)))


@jax.jit
def step(parameters, first, second, x, y):
    gradients = jax.grad(loss)(parameters, x, y)
    first = [0.9 * m + 0.1 * g for m, g in zip(first, gradients)]
    second = [0.99 * v + 0.01 * g * g for v, g in zip(second, gradients)]
    parameters = [p - 1e-3 * m / (jnp.sqrt(v) + 1e-8) for p, m, v in zip(parameters, first, second)]
    return parameters, first, second


def main() -> None:
    assert jax.devices()[0].platform == "gpu", jax.devices()
    width, layers = 1024, 4
    parameters = [jnp.full((width, width), 0.01, jnp.bfloat16) for _ in range(layers)]
    first = [jnp.zeros_like(p) for p in parameters]
    second = [jnp.zeros_like(p) for p in parameters]
    x, y = jnp.ones((4096, width), jnp.bfloat16), jnp.ones((4096, width), jnp.bfloat16)
    for _ in range(200):  # more than the autotuner tries candidates
        parameters, first, second = step(parameters, first, second, x, y)
    jax.block_until_ready(parameters)
    print("done", flush=True)


if __name__ == "__main__":
    main()
