#!/usr/bin/env python3
"""Writes the models of this folder and their float64 logits (Python 3.11, numpy, gguf 0.19.0). Shares no code with the engine.

One layer, f32, random weights; each has another scaling of its rotary positions, and rows far beyond the original context.
NAME.json: sequences of ids, positions (rows) and their logits. Frequencies as Hugging Face transformers 4.57 has them in
modeling_rope_utils.py: linear, llama3 (which files carry as divisors, rope_freqs.weight) and yarn.
"""
import json
import math
import os
import zlib

import numpy as np
from gguf import GGUFWriter, RopeScalingType

HERE = os.path.dirname(os.path.abspath(__file__))
N_HEAD, N_KV, N_FF, CONTEXT, EPS = 2, 1, 64, 512, 1e-6


def plain(base, dim):
    return base ** (-2.0 * np.arange(dim // 2) / dim)


def llama3_divisors(base, dim, factor, low, high, original):
    wavelength = 2 * math.pi / plain(base, dim)
    smooth = np.clip((original / wavelength - low) / (high - low), 0, 1)  # 0: slowed by the factor, 1: left alone
    return 1 / ((1 - smooth) / factor + smooth)


def yarn(base, dim, factor, original, fast=32.0, slow=1.0, attn_factor=1.0):
    def pair(turns):
        return dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(math.floor(pair(fast)), 0), min(math.ceil(pair(slow)), dim - 1)
    ramp = np.clip((np.arange(dim // 2) - low) / (high - low), 0, 1)
    freqs = plain(base, dim)
    return freqs / factor * ramp + freqs * (1 - ramp), attn_factor * (0.1 * math.log(factor) + 1)


class Model:
    """The file and the forward pass of one model. Weights are [out, in]."""

    def __init__(self, name, arch, base, head_dim):
        self.name, self.arch, self.base, self.dim = name, arch, base, head_dim
        self.interleaved = arch == "llama"
        self.freqs, self.length, self.divisors = plain(base, head_dim), 1.0, None
        self.writer = w = GGUFWriter(os.path.join(HERE, name + ".gguf"), arch)
        rng = np.random.RandomState(zlib.crc32(name.encode()))
        letters = [c for c in range(256) if 33 <= c <= 126 or 161 <= c <= 172 or c >= 174]
        alphabet = {c: chr(c) for c in letters}
        alphabet |= {c: chr(256 + i) for i, c in enumerate(c for c in range(256) if c not in letters)}
        tokens = [alphabet[b] for b in range(256)] + ["th", "the", "<|endoftext|>"]
        self.n_vocab = len(tokens)
        n_embd = 48 if arch == "qwen3" else N_HEAD * head_dim

        w.add_block_count(1)
        w.add_context_length(CONTEXT)
        w.add_embedding_length(n_embd)
        w.add_feed_forward_length(N_FF)
        w.add_head_count(N_HEAD)
        w.add_head_count_kv(N_KV)
        w.add_layer_norm_rms_eps(EPS)
        w.add_rope_freq_base(base)
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre("qwen2")
        w.add_token_list(tokens)
        w.add_token_types([1] * 258 + [3])
        w.add_token_merges(["t h", "th e"])
        w.add_eos_token_id(258)
        w.add_add_bos_token(False)

        n_q, n_kv = N_HEAD * head_dim, N_KV * head_dim
        shapes = {"token_embd.weight": (self.n_vocab, n_embd), "output_norm.weight": (n_embd,), "blk.0.attn_norm.weight": (n_embd,),
                  "blk.0.attn_q.weight": (n_q, n_embd), "blk.0.attn_k.weight": (n_kv, n_embd), "blk.0.attn_v.weight": (n_kv, n_embd),
                  "blk.0.attn_output.weight": (n_embd, n_q), "blk.0.ffn_norm.weight": (n_embd,), "blk.0.ffn_gate.weight": (N_FF, n_embd),
                  "blk.0.ffn_up.weight": (N_FF, n_embd), "blk.0.ffn_down.weight": (n_embd, N_FF)}
        if arch == "qwen2":
            shapes |= {"blk.0.attn_q.bias": (n_q,), "blk.0.attn_k.bias": (n_kv,), "blk.0.attn_v.bias": (n_kv,)}
        if arch == "qwen3":
            shapes |= {"blk.0.attn_q_norm.weight": (head_dim,), "blk.0.attn_k_norm.weight": (head_dim,)}
            w.add_key_length(head_dim)
            w.add_value_length(head_dim)
        # Large queries and keys: attention looks sharply, so that its logits depend on angles.
        spread = {"token_embd": 3, "attn_q": 1.6, "attn_k": 1.6}
        self.w = {}
        for tensor, shape in shapes.items():
            stem = tensor.removeprefix("blk.0.").rsplit(".", 1)[0]
            if tensor.endswith("bias"):
                x = rng.standard_normal(shape) * 0.5
            elif len(shape) == 1:
                x = rng.uniform(0.6, 1.4, shape)
            else:
                x = rng.standard_normal(shape) * spread.get(stem, 1) / math.sqrt(shape[1])
            self.w[tensor.removeprefix("blk.0.")] = x.astype(np.float32).astype(np.float64)

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float64(np.float32(EPS))) * self.w[name]

    def project(self, x, stem, heads):
        y = x @ self.w[stem + ".weight"].T + self.w.get(stem + ".bias", 0)
        y = y.reshape(len(x), heads, self.dim)
        return self.norm(y, stem + "_norm.weight") if stem + "_norm.weight" in self.w else y

    def rotate(self, x, freqs, length):
        angle = np.arange(len(x))[:, None] * freqs
        cos, sin = np.cos(angle)[:, None] * length, np.sin(angle)[:, None] * length
        half = self.dim // 2
        first, second = (slice(0, None, 2), slice(1, None, 2)) if self.interleaved else (slice(0, half), slice(half, None))
        a, b, y = x[..., first], x[..., second], np.empty_like(x)
        y[..., first], y[..., second] = a * cos - b * sin, a * sin + b * cos
        return y

    def logits(self, ids, freqs, length):
        n = len(ids)
        x = self.w["token_embd.weight"][ids]
        h = self.norm(x, "attn_norm.weight")
        q = self.rotate(self.project(h, "attn_q", N_HEAD), freqs, length)
        k = self.rotate(self.project(h, "attn_k", N_KV), freqs, length)
        v = self.project(h, "attn_v", N_KV)
        heads = []
        for i in range(N_HEAD):
            s = q[:, i] @ k[:, i * N_KV // N_HEAD].T / math.sqrt(self.dim)
            s[np.triu_indices(n, 1)] = -np.inf
            p = np.exp(s - s.max(1, keepdims=True))
            heads.append(p / p.sum(1, keepdims=True) @ v[:, i * N_KV // N_HEAD])
        x = x + np.concatenate(heads, 1) @ self.w["attn_output.weight"].T
        h = self.norm(x, "ffn_norm.weight")
        gate = h @ self.w["ffn_gate.weight"].T
        x = x + gate / (1 + np.exp(-gate)) * (h @ self.w["ffn_up.weight"].T) @ self.w["ffn_down.weight"].T
        return self.norm(x, "output_norm.weight") @ self.w["token_embd.weight"].T

    def finish(self):
        for name, x in self.w.items():
            self.writer.add_tensor(name if name.startswith(("token_embd", "output_norm")) else "blk.0." + name, x.astype(np.float32))
        if self.divisors is not None:
            self.writer.add_tensor("rope_freqs.weight", self.divisors)
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()
        rng = np.random.RandomState(zlib.crc32(("ids of " + self.name).encode()))
        sequences = []
        for n, rows in ((9, range(9)), (200, (60, 100, 150, 199))):
            ids = [int(x) for x in rng.randint(0, 256, n)]
            z = self.logits(ids, self.freqs, self.length)[list(rows)]
            without = self.logits(ids, plain(self.base, self.dim), 1.0)[list(rows)]
            print(f"{self.name}: {n} tokens, RMS of the scaling {np.sqrt(((z - without) ** 2).mean()):.3f}, spread {z.std():.3f}")
            assert np.sqrt(((z - without) ** 2).mean()) > 0.05
            sequences.append({"ids": ids, "rows": list(rows), "logits": [[float(f"{x:.7g}") for x in row] for row in z]})
        with open(os.path.join(HERE, self.name + ".json"), "w") as file:
            json.dump({"sequences": sequences}, file, separators=(",", ":"))
            file.write("\n")


def main():
    m = Model("llama_linear", "llama", 10000.0, 32)
    m.writer.add_rope_scaling_type(RopeScalingType.LINEAR)
    m.writer.add_rope_scaling_factor(3.0)
    m.freqs = m.freqs / 3
    m.finish()

    m = Model("llama_llama3", "llama", 10000.0, 32)
    m.divisors = llama3_divisors(10000.0, 32, 8.0, 1.0, 4.0, 64).astype(np.float32)
    m.freqs = m.freqs / m.divisors.astype(np.float64)
    m.finish()

    m = Model("llama_yarn", "llama", 10000.0, 32)
    m.writer.add_rope_scaling_type(RopeScalingType.YARN)
    m.writer.add_rope_scaling_factor(4.0)
    m.writer.add_rope_scaling_orig_ctx_len(64)
    m.freqs, m.length = yarn(10000.0, 32, 4.0, 64)
    m.finish()

    # Every parameter that a file may give, and the original context left to its default.
    m = Model("qwen2_yarn", "qwen2", 100000.0, 16)
    m.writer.add_rope_scaling_type(RopeScalingType.YARN)
    m.writer.add_rope_scaling_factor(6.0)
    m.writer.add_float32("qwen2.rope.scaling.yarn_beta_fast", 24.0)
    m.writer.add_float32("qwen2.rope.scaling.yarn_beta_slow", 2.0)
    m.writer.add_float32("qwen2.rope.scaling.attn_factor", 1.25)
    m.freqs, m.length = yarn(100000.0, 16, 6.0, CONTEXT, 24.0, 2.0, 1.25)
    m.finish()

    m = Model("qwen3_yarn", "qwen3", 1000000.0, 64)
    m.writer.add_rope_scaling_type(RopeScalingType.YARN)
    m.writer.add_rope_scaling_factor(4.0)
    m.writer.add_rope_scaling_orig_ctx_len(128)
    m.writer.add_bool("qwen3.rope.scaling.finetuned", True)
    m.freqs, m.length = yarn(1000000.0, 64, 4.0, 128)
    m.finish()


main()
