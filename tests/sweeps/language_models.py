"""Every causal language model of transformers with two layers, trained for two steps in bf16."""

import contextlib

import torch
import transformers
from sweep import sweep
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

transformers.logging.set_verbosity_error()
LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers", "decoder_layers")
LISTS = ("layer_types", "layers_block_type", "mlp_layer_types")


def configuration(kind):
    config = CONFIG_MAPPING[kind]()
    for name in (*LAYERS, *LISTS):
        value = getattr(config, name, None)
        with contextlib.suppress(Exception):  # some are computed from others
            if isinstance(value, int):
                setattr(config, name, 2)
            elif isinstance(value, (list, tuple)):
                setattr(config, name, list(value)[:2])
    return config


def train(kind):
    config = configuration(kind)
    model_class = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    with torch.device("cuda"):
        model = (
            (model_class[0] if isinstance(model_class, tuple) else model_class)(config)
            .to(torch.bfloat16)
            .cuda()
            .train()
        )
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(5, 100, (2, 128), device="cuda")
    for _ in range(2):
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def own_fault(error):
    """Python's: a configuration that two layers or defaults do not make; of the device's, only that it is too large."""
    return isinstance(error, (NotImplementedError, torch.cuda.OutOfMemoryError)) or not isinstance(
        error, (RuntimeError, SystemError)
    )


sweep("models", ((kind, kind) for kind in sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)), train, own_fault, at_least=100)
