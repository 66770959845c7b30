"""torchtitan's own training program on one of its debug configurations, with a tokenizer and a text of our making.

    torchrun --nproc-per-node 4 torchtitan_train.py --module llama3 --config llama3_debugmodel …
"""

from __future__ import annotations

import json
import pathlib
import random
import sys
import tempfile

from tokenizers import Tokenizer, models, pre_tokenizers


def assets(folder: pathlib.Path) -> list[str]:
    """The tokenizer and the data set its repository keeps under tests/assets, which the wheel leaves out."""
    words = [f"w{i}" for i in range(2040)]
    tokenizer = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(["<unk>", "<s>", "</s>", *words])}, "<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    (folder / "tokenizer").mkdir()
    tokenizer.save(str(folder / "tokenizer" / "tokenizer.json"))
    (folder / "tokenizer" / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": "</s>"}))
    (folder / "c4_test").mkdir()
    random.seed(0)
    with (folder / "c4_test" / "data.json").open("w") as file:
        for _ in range(256):
            file.write(json.dumps({"text": " ".join(random.choices(words, k=2000))}) + "\n")
    return ["--hf_assets_path", str(folder / "tokenizer"), "--dataloader.dataset_path", str(folder / "c4_test"),
            "--dump_folder", str(folder / "out")]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.argv += assets(pathlib.Path(folder))
        from torchtitan.train import main
        main()
