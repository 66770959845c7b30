"""Synthetic data, tokenizers and weights in the formats that public training scripts read. No download.

    python data.py FOLDER PART…        writes the parts named into FOLDER, unless they are there
"""

from __future__ import annotations

import json
import pathlib
import pickle
import random
import sys

WORDS = [a + b for a in "ka lo mi nu re sa te vi wo zu".split()
         for b in "bar din fel gos hin jur kel mon pas tor".split()]


def sentences(count: int, words: int) -> list[str]:
    chosen = random.Random(0)
    return [" ".join(chosen.choices(WORDS, k=words)) for _ in range(count)]


def tokenizer(folder: pathlib.Path) -> None:
    """A word-level tokenizer as transformers loads it."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    words = ["<unk>", "<s>", "</s>", "<pad>", *WORDS]
    known = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, "<unk>"))
    known.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=known, unk_token="<unk>", bos_token="<s>", eos_token="</s>",
                                   pad_token="<pad>")
    fast.chat_template = "{% for m in messages %}{{ m['role'] + ' ' + m['content'] + ' ' }}{% endfor %}"
    fast.save_pretrained(folder)


def text(folder: pathlib.Path) -> None:
    (folder / "train.txt").write_text("\n".join(sentences(4000, 60)) + "\n")


def chat(folder: pathlib.Path) -> None:
    """Texts, and the first turn of a conversation alone, as TRL reads them."""
    texts = [{"text": line} for line in sentences(512, 120)]
    prompts = [{"prompt": [{"role": "user", "content": line}]} for line in sentences(512, 30)]
    for kind, rows in (("text", texts), ("prompts", prompts)):
        (folder / kind).mkdir()
        (folder / kind / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def llama(folder: pathlib.Path) -> None:
    """A small Llama with random weights and its tokenizer."""
    from transformers import LlamaConfig, LlamaForCausalLM
    tokenizer(folder)
    config = LlamaConfig(hidden_size=512, intermediate_size=1408, num_hidden_layers=4, num_attention_heads=8,
                         num_key_value_heads=8, vocab_size=1024, max_position_embeddings=2048)
    LlamaForCausalLM(config).save_pretrained(folder)


def zero(folder: pathlib.Path) -> None:
    """Configurations of DeepSpeed, one for each stage of ZeRO, as transformers fills them in."""
    given = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping")
    offload = {"offload_optimizer": {"device": "cpu", "pin_memory": True}}
    for name, stage, more in (("zero1", 1, {}), ("zero2", 2, {}), ("zero3", 3, {}), ("zero3_offload", 3, offload)):
        config = {"bf16": {"enabled": True}, "zero_optimization": {"stage": stage, "overlap_comm": True, **more},
                  **dict.fromkeys(given, "auto")}
        (folder / f"{name}.json").write_text(json.dumps(config, indent=2))


def images(folder: pathlib.Path) -> None:
    """Two classes, as torchvision's ImageFolder, datasets' imagefolder and DiT read them."""
    import numpy
    from PIL import Image
    noise = numpy.random.default_rng(0)
    for split, count in (("train", 320), ("val", 64)):
        for i in range(count):
            place = folder / split / f"class{i % 2}"
            place.mkdir(parents=True, exist_ok=True)
            picture = Image.fromarray(noise.integers(0, 255, (64, 64, 3), dtype=numpy.uint8))
            picture.resize((256, 256)).save(place / f"{i}.jpg")


def detection(folder: pathlib.Path) -> None:
    """Images with boxes, as ultralytics reads them."""
    import numpy
    from PIL import Image
    noise = numpy.random.default_rng(0)
    for split, count in (("train", 64), ("val", 16)):
        for kind in ("images", "labels"):
            (folder / kind / split).mkdir(parents=True)
        for i in range(count):
            Image.fromarray(noise.integers(0, 255, (64, 64, 3), dtype=numpy.uint8)).resize((640, 640)).save(
                folder / "images" / split / f"{i}.jpg")
            (folder / "labels" / split / f"{i}.txt").write_text("0 0.5 0.5 0.4 0.4\n1 0.2 0.3 0.1 0.2\n")
    (folder / "data.yaml").write_text(f"path: {folder}\ntrain: images/train\nval: images/val\nnames: [first, second]\n")


def vae(folder: pathlib.Path) -> None:
    """Stable Diffusion's autoencoder in its usual size, with random weights, where DiT's script looks for it."""
    from diffusers import AutoencoderKL
    AutoencoderKL(block_out_channels=(128, 256, 512, 512), down_block_types=("DownEncoderBlock2D",) * 4,
                  up_block_types=("UpDecoderBlock2D",) * 4, layers_per_block=2, latent_channels=4).save_pretrained(
                      folder / "stabilityai" / "sd-vae-ft-ema")


def tokens(folder: pathlib.Path) -> None:
    """Token files as nanoGPT's train.py reads them."""
    import numpy
    noise = numpy.random.default_rng(0)
    for name, vocabulary in (("shakespeare_char", 65), ("openwebtext", 50257)):
        place = folder / name
        place.mkdir()
        for split, count in (("train", 1_000_000), ("val", 100_000)):
            noise.integers(0, vocabulary, count, dtype=numpy.uint16).tofile(place / f"{split}.bin")
    letters = [chr(32 + i) for i in range(65)]
    meta = {"vocab_size": 65, "itos": dict(enumerate(letters)), "stoi": {c: i for i, c in enumerate(letters)}}
    (folder / "shakespeare_char" / "meta.pkl").write_bytes(pickle.dumps(meta))


def fineweb(folder: pathlib.Path) -> None:
    """Shards as modded-nanogpt reads them: 256 numbers ahead, then tokens of 16 bits."""
    import numpy
    noise = numpy.random.default_rng(0)
    for name in ("train_000001", "val_000000"):
        count = 12_000_000
        head = numpy.zeros(256, dtype=numpy.int32)
        head[:3] = 20240520, 1, count
        shard = noise.integers(0, 50256, count, dtype=numpy.uint16)
        shard[::1000] = 50256
        with (folder / f"fineweb_{name}.bin").open("wb") as file:
            file.write(head.tobytes() + shard.tobytes())


def c4(folder: pathlib.Path) -> None:
    """The extract of C4 that torchtitan's debug configurations read."""
    with (folder / "data.json").open("w") as file:
        for line in sentences(512, 1500):
            row = {"text": line, "timestamp": "2019-04-25T12:57:54Z", "url": "https://example.org"}
            file.write(json.dumps(row) + "\n")


PARTS = {part.__name__: part
         for part in (tokenizer, text, chat, llama, zero, images, detection, vae, tokens, fineweb, c4)}

if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:]:
        if not (root / name / ".done").exists():
            (root / name).mkdir(parents=True, exist_ok=True)
            PARTS[name](root / name)
            (root / name / ".done").touch()
