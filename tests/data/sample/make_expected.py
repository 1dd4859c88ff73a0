#!/usr/bin/env python3
"""Writes expected.txt: the tokens that a sampler must choose, worked out with full sorts and Python's own math.

It shares no code with the sampler. Each line: name, the nine parameters, the prompt, ids chosen.
One row of 1000 logits serves every draw of a case: 14-bit numbers / 1024 (exact in f32, with many ties) from SplitMix64(case seed).
The C++ test rebuilds the same rows. Logits are f32: the penalties are rounded to f32 after each operation.
Usage: make_expected.py > expected.txt
"""
import math
import struct

MASK = (1 << 64) - 1
N_VOCAB, N_DRAWS = 1000, 24


class SplitMix64:
    def __init__(self, seed):
        self.state = seed & MASK

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def sample(row, window, rng, p):
    row = list(row)
    repeat, frequency, presence = f32(p["repeat"]), f32(p["frequency"]), f32(p["presence"])
    for token in set(window):
        value = f32(row[token] - f32(window.count(token) * frequency))
        value = f32(value - presence)
        if repeat > 1:
            value = f32(value / repeat) if value > 0 else f32(value * repeat)
        row[token] = value
    if p["temperature"] < 1e-6:
        return row.index(max(row))
    alive = [i for i in range(len(row)) if row[i] > -math.inf]
    if 0 < p["top_k"] < len(alive):
        kth = sorted((row[i] for i in alive), reverse=True)[p["top_k"] - 1]
        alive = [i for i in alive if row[i] >= kth]
    best = max(row[i] for i in alive)
    top_p = f32(p["top_p"])
    if top_p < 1:
        total = math.fsum(math.exp(row[i] - best) for i in alive)
        kept, mass = [], 0.0
        for i in sorted(alive, key=lambda i: (-row[i], i)):
            kept.append(i)
            mass += math.exp(row[i] - best)
            if mass / total > top_p:
                break
        alive = sorted(kept)
    min_p = f32(p["min_p"])
    if min_p > 0:
        alive = [i for i in alive if row[i] >= best + math.log(min_p)]
    temperature = f32(p["temperature"])
    weights = [math.exp((row[i] - best) / temperature) for i in alive]
    total = math.fsum(weights)
    r = (rng.next() >> 40) * 2.0**-24
    mass = 0.0
    for i, weight in zip(alive, weights):
        mass += weight
        if mass / total >= r:
            return i
    return alive[-1]


DEFAULTS = dict(seed=42, temperature=0.8, top_k=40, top_p=0.95, min_p=0.0, repeat=1.1, frequency=0.0, presence=0.0, last_n=64)
CASES = {
    "defaults": {},
    "seed-0": dict(seed=0),
    "seed-max": dict(seed=MASK),
    "greedy-with-penalties": dict(temperature=0.0, repeat=1.3),
    "no-filters": dict(top_k=0, top_p=1.0, repeat=1.0),
    "top-k-ties": dict(top_k=3, top_p=1.0, repeat=1.0),
    "top-p-whole-vocabulary": dict(top_k=0, top_p=0.5, temperature=1.5),
    "min-p": dict(top_k=0, top_p=1.0, min_p=0.25, temperature=2.0),
    "all-filters": dict(top_k=100, top_p=0.9, min_p=0.05, temperature=1.25),
    "frequency-presence": dict(frequency=0.5, presence=0.25, repeat=1.0),
    "negative-frequency": dict(frequency=-0.75, repeat=1.0),
    "short-window": dict(repeat=2.0, last_n=3, temperature=0.5),
}


def main():
    for number, (name, changes) in enumerate(CASES.items()):
        p = {**DEFAULTS, **changes}
        make = SplitMix64(1000 + number)
        row = [(make.next() >> 50) / 1024 - 8 for _ in range(N_VOCAB)]
        prompt = [make.next() % N_VOCAB for _ in range(80)]
        # Tokens that the sampler is likely to choose stand in the prompt too.
        prompt[-2:] = sorted(range(N_VOCAB), key=lambda i: -row[i])[:2]
        tokens, rng, ids = list(prompt), SplitMix64(p["seed"]), []
        for _ in range(N_DRAWS):
            window = tokens[-p["last_n"]:] if p["last_n"] else []
            ids.append(sample(row, window, rng, p))
            tokens.append(ids[-1])
        print(name, *p.values(), "prompt", *prompt[-2:], "ids", *ids)


main()
