"""A recipe of torchtune with its own configuration, on a small Llama 3.2; weights, tokenizer and text are made up.

    torchrun --nproc-per-node 2 torchtune_recipe.py lora_finetune_distributed llama3_2/1B_lora
"""

from __future__ import annotations

import importlib.util
import pathlib
import runpy
import sys
import tempfile

import torch

VOCABULARY = 4096
SIZES = dict(vocab_size=VOCABULARY, num_layers=4, num_heads=8, num_kv_heads=4, embed_dim=512, max_seq_len=1024,
             intermediate_dim=2048)


class Tokenizer:
    pad_id, max_seq_len = 0, None


class Text(torch.utils.data.Dataset):
    def __init__(self, tokenizer, length: int = 512, packed: bool = False):
        self.length = length

    def __len__(self) -> int:
        return 128

    def __getitem__(self, index: int) -> dict:
        tokens = [1 + (index * 31 + i * 7) % (VOCABULARY - 1) for i in range(self.length)]
        return {"tokens": tokens, "labels": tokens}


class Checkpointer:
    """Fresh weights instead of files."""

    def __init__(self, output_dir: str, should_load_recipe_state: bool = False, **_):
        pass

    def load_checkpoint(self) -> dict:
        from torchtune.models.llama3_2 import llama3_2

        return {"model": llama3_2(**SIZES).state_dict()}

    def save_checkpoint(self, *_, **__) -> None:
        pass


def main() -> None:
    # The recipes lie beside the package; importing them is forbidden, they are programs.
    root = pathlib.Path(importlib.util.find_spec("torchtune").origin).parents[1] / "recipes"
    recipe, configuration, *rest = sys.argv[1:]
    output = tempfile.mkdtemp()
    lora = "lora" in configuration
    sizes = [f"model.{name}={value}" for name, value in SIZES.items()]
    sys.argv = [
        recipe,
        "--config",
        str(root / "configs" / f"{configuration}.yaml"),
        f"output_dir={output}",
        "tokenizer._component_=torchtune_recipe.Tokenizer",
        "~tokenizer.path",
        "~tokenizer.max_seq_len",
        f"model._component_=torchtune.models.llama3_2.{'lora_llama3_2' if lora else 'llama3_2'}",
        *sizes,
        "checkpointer._component_=torchtune_recipe.Checkpointer",
        "~checkpointer.checkpoint_dir",
        "~checkpointer.checkpoint_files",
        "~checkpointer.model_type",
        "dataset._component_=torchtune_recipe.Text",
        "max_steps_per_epoch=4",
        "gradient_accumulation_steps=2",
        "seed=1",
        *rest,
    ]
    runpy.run_path(str(root / f"{recipe}.py"), run_name="__main__")
    print("done", flush=True)


if __name__ == "__main__":
    main()
