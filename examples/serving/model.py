"""Writes what a serving engine needs of a model to run it with random weights: its configuration and a tokenizer.

    python model.py FOLDER [llama-3.1-8b | qwen3-32b | qwen3-30b-a3b | gpt-oss-120b | minimax-m2.5 | tiny] [LAYERS]

LAYERS: fewer than the model has, for a quick look at an engine's kernels. Nothing is downloaded. The tokenizer has as
many words as the model has tokens ("t0", "t1", …); answers of a model with random weights mean nothing anyway.
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
    "gpt-oss-120b": dict(
        architectures=["GptOssForCausalLM"], model_type="gpt_oss", rms_norm_eps=1e-5, rope_theta=150000.0,
        hidden_act="silu", bos_token_id=1, eos_token_id=2, pad_token_id=0, tie_word_embeddings=False,
        torch_dtype="bfloat16", attention_bias=True, attention_dropout=0.0, hidden_size=2880, intermediate_size=2880,
        num_hidden_layers=36, num_attention_heads=64, num_key_value_heads=8, head_dim=64, num_local_experts=128,
        num_experts_per_tok=4, experts_per_token=4, swiglu_limit=7.0, sliding_window=128, vocab_size=201088,
        initial_context_length=4096, max_position_embeddings=131072, output_router_logits=False,
        layer_types=["sliding_attention", "full_attention"] * 18,
        rope_scaling=dict(rope_type="yarn", factor=32.0, beta_fast=32.0, beta_slow=1.0, truncate=False,
                          original_max_position_embeddings=4096),
        quantization_config=dict(quant_method="mxfp4", modules_to_not_convert=[
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"])),
    "minimax-m2.5": dict(
        architectures=["MiniMaxM2ForCausalLM"], model_type="minimax_m2", rms_norm_eps=1e-6, rope_theta=5000000.0,
        hidden_act="silu", bos_token_id=1, eos_token_id=2, tie_word_embeddings=False, torch_dtype="bfloat16",
        hidden_size=3072, intermediate_size=1536, num_hidden_layers=62, num_attention_heads=48, num_key_value_heads=8,
        head_dim=128, rotary_dim=64, num_local_experts=256, num_experts_per_tok=8, scoring_func="sigmoid",
        use_routing_bias=True, use_qk_norm=True, qk_norm_type="per_layer", use_mtp=False, vocab_size=200064,
        attn_type_list=[1] * 62, max_position_embeddings=196608,
        quantization_config=dict(quant_method="fp8", activation_scheme="dynamic", fmt="float8_e4m3fn",
                                 weight_block_size=[128, 128], modules_to_not_convert=["gate", "lm_head"])),
    "tiny": LLAMA | dict(
        hidden_size=512, intermediate_size=1024, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=2,
        head_dim=64, vocab_size=1024, max_position_embeddings=2048),
}

# Words that engines ask a model's tokenizer for by name.
WORDS = {"gpt-oss-120b": {"<|return|>": 200002, "<|channel|>": 200005, "<|start|>": 200006, "<|end|>": 200007,
                          "<|message|>": 200008, "<|call|>": 200012}}


def shortened(config, layers):
    """The same model with so many layers; lists with one entry a layer are cut too."""
    full = config["num_hidden_layers"]
    config = {key: value[:layers] if isinstance(value, list) and len(value) == full else value
              for key, value in config.items()}
    return config | dict(num_hidden_layers=min(layers, full))


def write(folder, name, layers=None):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config = MODELS[name] if layers is None else shortened(MODELS[name], layers)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    (folder / "generation_config.json").write_text(json.dumps(dict(bos_token_id=1, eos_token_id=2)))
    named = WORDS.get(name, {})
    words = {f"t{i}": i for i in range(config["vocab_size"]) if i not in named.values()} | named
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
    write(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "llama-3.1-8b",
          int(sys.argv[3]) if len(sys.argv) > 3 else None)
