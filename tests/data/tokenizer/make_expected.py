#!/usr/bin/env python3
"""Writes tiny_gpt2 and tiny_llama_bpe (.vocabulary.json, .jsonl) with Hugging Face tokenizers 0.23, which shares no code with the engine.

Inputs: those of tiny_qwen2.jsonl that are UTF-8 and short, and seeded strings put together from pieces where pre-tokenizers differ.
Each vocabulary: the 256 bytes, merges learnt under its own pre-tokenizer, and words that no merges lead to: llama-bpe takes a piece
that is a token whole ("ignore_merges" in the tokenizer.json of Llama 3), gpt-2 never finds those.
"""
import json
import os
import random

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# Cut by the published pattern, then bytes to letters; gpt-2's pattern is ByteLevel's own.
CUTS = {
    "llama-bpe": pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]),
    "gpt-2": pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
}
PIECES = ["a", "the", "Hello", "World", " ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", " \n", "\u00a0", "\u3000", "\u2028", "\u0085", "1", "12", "123",
          "1234567", "\u0661\u0662", "\u2163", "\u00bd", "\u4e00", "\u4f60\u597d", "\u00e9", "e\u0301", "\u0928\u093f", "\U0001f600", "\U0001f468\u200d\U0001f4bb", "\u200b", "\ufeff",
          "'s", "'S", "'t", "'T", "'re", "'RE", "'Ve", "'m", "'LL", "'d", "'x", "''", "n't", ".", "...", "!?", "--", "_", "(", ")", "=>", "\u20ac", "\u00df", "\u01c5", "\u02b0"]
TEXT = ["Hello world, it's 2024 and they've seen 123456 things.", "the theory of the thing isn't 100 1000 10000", "HELLO WORLD IT'S WE'LL",
        "int main() {\r\n    return 0;\r\n}\n\n\n", "  if x == 10:\n        y = 200\n", "caf\u00e9 na\u00efve \u4f60\u597d\u4e16\u754c 3.14159 2,718,281"] * 3
WHOLE = ["Hello", " World", "isn", "'ll", " they", "123", "777", "\u4f60\u597d", "\r\n\r\n", "======"]


def texts():
    for line in open(os.path.join(HERE, "tiny_qwen2.jsonl"), encoding="ascii"):
        case = json.loads(line)
        data = bytes.fromhex(case["hex"])
        try:
            text = data.decode()
        except UnicodeDecodeError:
            continue
        if len(data) <= 100:
            yield case["id"], text
    rng = random.Random(20240917)
    for i in range(240):
        yield f"mixed-{i + 1:03}", "".join(rng.choice(PIECES) for _ in range(rng.randint(2, 9)))
    for i, word in enumerate(WHOLE):
        yield f"whole-{i + 1:03}", word + " x " + word + word + "a " + word


def main():
    for name, pre in (("tiny_gpt2", "gpt-2"), ("tiny_llama_bpe", "llama-bpe")):
        trained = Tokenizer(models.BPE())
        trained.pre_tokenizer = CUTS[pre]
        trained.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=360, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
        state = json.loads(trained.to_str())["model"]
        vocabulary = dict(state["vocab"])
        merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in state["merges"]]
        byte_level = pre_tokenizers.ByteLevel(False, use_regex=False)
        for word in WHOLE:
            token = byte_level.pre_tokenize_str(word)[0][0]
            vocabulary.setdefault(token, len(vocabulary))
        tokenizer = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=pre == "llama-bpe"))
        tokenizer.pre_tokenizer = CUTS[pre]
        tokens = sorted(vocabulary, key=vocabulary.get)
        end = len(tokens)
        tokens.append("<|end|>")
        data = {"model": "gpt2", "pre": pre, "bos": end, "eos": end, "pad": end, "add_bos": False, "tokens": tokens,
                "token_types": [1] * end + [3], "merges": [" ".join(m) for m in merges]}
        with open(os.path.join(HERE, name + ".vocabulary.json"), "w") as file:
            json.dump(data, file, separators=(",", ":"))
            file.write("\n")
        n = 0
        with open(os.path.join(HERE, name + ".jsonl"), "w") as file:
            for case, text in texts():
                ids = tokenizer.encode(text, add_special_tokens=False).ids
                file.write(json.dumps({"id": case, "hex": text.encode().hex(), "ids_off": ids}, separators=(",", ":")) + "\n")
                n += 1
        print(name, len(tokens), "tokens,", len(merges), "merges,", n, "lines")


main()
