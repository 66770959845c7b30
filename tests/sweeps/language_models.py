"""Every causal language model of transformers with two layers, trained for two steps in bf16."""

import contextlib
import sys

import torch
import transformers
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


def train(config):
    model_class = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    with torch.device("cuda"):
        model = (model_class[0] if isinstance(model_class, tuple) else model_class)(config).to(torch.bfloat16).cuda().train()
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(5, 100, (2, 128), device="cuda")
    for _ in range(2):
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()


ran, refused, failed = 0, [], 0
for kind in sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES):
    try:
        train(configuration(kind))
        ran += 1
    except (NotImplementedError, torch.cuda.OutOfMemoryError):
        refused.append(kind)
    except (RuntimeError, SystemError) as error:  # the device's
        failed += 1
        print(f"{kind}: {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
    except Exception:  # of Python: a configuration that two layers or defaults do not make
        refused.append(kind)
    torch.cuda.empty_cache()
print(f"{ran} models trained, {failed} failed; {len(refused)} do not fit or need more than defaults: {' '.join(refused)}")
sys.exit(failed > 0 or ran < 100)
