"""Writes what a serving engine needs of a model to run it with random weights: its configuration and a tokenizer.

    python model.py FOLDER [llama-3.1-8b | qwen3-32b | qwen3-30b-a3b | tiny]

Nothing is downloaded. The tokenizer has as many words as the model has tokens ("t0", "t1", …); answers of a model
with random weights mean nothing anyway.
"""

import json
import pathlib
import sys

LLAMA = dict(architectures=["LlamaForCausalLM"], model_type="llama", rms_norm_eps=1e-5, rope_theta=500000.0,
             hidden_act="silu", bos_token_id=1, eos_token_id=2, tie_word_embeddings=False, torch_dtype="bfloat16")
MODELS = {
    "llama-3.1-8b": LLAMA | dict(
        hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
        head_dim=128, vocab_size=128256, max_position_embeddings=131072),
    "qwen3-32b": LLAMA | dict(
        architectures=["Qwen3ForCausalLM"], model_type="qwen3", rms_norm_eps=1e-6, rope_theta=1000000.0,
        attention_bias=False, hidden_size=5120, intermediate_size=25600, num_hidden_layers=64, num_attention_heads=64,
        num_key_value_heads=8, head_dim=128, vocab_size=151936, max_position_embeddings=40960),
    "qwen3-30b-a3b": LLAMA | dict(
        architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", rms_norm_eps=1e-6, rope_theta=1000000.0,
        attention_bias=False, hidden_size=2048, intermediate_size=6144, moe_intermediate_size=768, num_experts=128,
        num_experts_per_tok=8, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[],
        num_hidden_layers=48, num_attention_heads=32, num_key_value_heads=4, head_dim=128, vocab_size=151936,
        max_position_embeddings=40960),
    "tiny": LLAMA | dict(
        hidden_size=512, intermediate_size=1024, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=2,
        head_dim=64, vocab_size=1024, max_position_embeddings=2048),
}


def write(folder, name):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config = MODELS[name]
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    (folder / "generation_config.json").write_text(json.dumps(dict(bos_token_id=1, eos_token_id=2)))
    words = {f"t{i}": i for i in range(config["vocab_size"])}
    (folder / "tokenizer.json").write_text(json.dumps(dict(
        version="1.0", truncation=None, padding=None, added_tokens=[], normalizer=None,
        pre_tokenizer=dict(type="WhitespaceSplit"), post_processor=None, decoder=None,
        model=dict(type="WordLevel", vocab=words, unk_token="t0"))))
    (folder / "tokenizer_config.json").write_text(json.dumps(dict(
        tokenizer_class="PreTrainedTokenizerFast", bos_token="t1", eos_token="t2", unk_token="t0",
        model_max_length=config["max_position_embeddings"])))


if __name__ == "__main__":
    if len(sys.argv) < 2 or (len(sys.argv) > 2 and sys.argv[2] not in MODELS):
        sys.exit(__doc__)
    write(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "llama-3.1-8b")
