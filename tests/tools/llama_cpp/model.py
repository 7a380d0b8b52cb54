"""Writes the weights of all-MiniLM-L6-v2 to the file $1, in the format that llama.cpp reads.

Run by the Python of `.venv-llama`. llama.cpp expects a mark on tokens that begin a word, not on those that continue it.
"""

from __future__ import annotations

import json
import sys
import zipfile
from importlib.resources import files
from typing import Any

import gguf
import numpy
from safetensors.numpy import load

_ARCHITECTURE = gguf.MODEL_ARCH.BERT


def main(path: str) -> None:
    archive = files("all_minilm_l6_v2") / "model.zip"
    with archive.open("rb") as file, zipfile.ZipFile(file) as parts:
        config = json.loads(parts.read("config.json"))
        tokenizer = json.loads(parts.read("tokenizer.json"))
        weights = load(parts.read("model.safetensors"))
    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[_ARCHITECTURE])
    _add_sizes(writer, config)
    _add_tokens(writer, tokenizer)
    names = gguf.get_tensor_name_map(_ARCHITECTURE, config["num_hidden_layers"])
    for name, tensor in weights.items():
        if not name.startswith(("pooler.", "embeddings.position_ids")):
            writer.add_tensor(names.get_name(name, try_suffixes=(".weight", ".bias")), tensor.astype(numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_sizes(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    writer.add_name("all-MiniLM-L6-v2")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_token_type_count(config["type_vocab_size"])
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)


def _add_tokens(writer: gguf.GGUFWriter, tokenizer: dict[str, Any]) -> None:
    numbers = tokenizer["model"]["vocab"]
    special = {token["content"] for token in tokenizer["added_tokens"]}
    tokens = sorted(numbers, key=numbers.get)
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([token if token in special else _marked(token) for token in tokens])
    writer.add_token_types([gguf.TokenType.CONTROL if token in special else gguf.TokenType.NORMAL for token in tokens])
    writer.add_bos_token_id(numbers["[CLS]"])
    writer.add_eos_token_id(numbers["[SEP]"])
    writer.add_sep_token_id(numbers["[SEP]"])
    writer.add_unk_token_id(numbers["[UNK]"])
    writer.add_pad_token_id(numbers["[PAD]"])
    writer.add_mask_token_id(numbers["[MASK]"])


def _marked(token: str) -> str:
    return token[2:] if token.startswith("##") else f"\N{LOWER ONE EIGHTH BLOCK}{token}"


if __name__ == "__main__":
    main(sys.argv[1])
