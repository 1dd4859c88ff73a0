#!/usr/bin/env python3
"""Writes expected.txt: the tokens that a sampler must choose, worked out with full sorts and Python's own math.

It shares no code with the sampler. Each line: name, the parameters that differ from the defaults, the end of the prompt, ids chosen.
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


def repeats(window, limit, allowed):
    """{token: length of the longest repeat that it would continue}, by comparing every pair of places."""
    found = {}
    for end in range(len(window) - 1):  # a repeat that ends here would be continued by window[end + 1]
        length = 0
        while length <= end and length < limit and window[end - length] == window[len(window) - 1 - length]:
            length += 1
        if length >= allowed:
            found[window[end + 1]] = max(length, found.get(window[end + 1], 0))
    return found


def behind_breaker(window, breakers):
    """How many tokens stand behind the newest breaker."""
    for start in range(len(window) - 1, -1, -1):
        ends = [start + len(b) for b in breakers if window[start:start + len(b)] == b]
        if ends:
            return len(window) - max(ends)
    return len(window)


def kept_mass(ranked, weight, p):
    kept, mass, total = [], 0.0, math.fsum(weight(i) for i in ranked)
    for i in ranked:
        kept.append(i)
        mass += weight(i)
        if mass / total > p:
            break
    return sorted(kept)


class Sampler:
    def __init__(self, p):
        self.p, self.rng, self.mu = p, SplitMix64(p["seed"]), 2 * f32(p["mirostat_tau"])

    def uniform(self):
        return (self.rng.next() >> 40) * 2.0**-24

    def sample(self, row, tokens):
        p = self.p
        row = list(row)
        for token, bias in p["logit_bias"]:
            row[token] = f32(row[token] + f32(bias))
        window = tokens[-p["repeat_last_n"]:] if p["repeat_last_n"] > 0 else tokens if p["repeat_last_n"] < 0 else []
        repeat, frequency, presence = f32(p["repeat_penalty"]), f32(p["frequency_penalty"]), f32(p["presence_penalty"])
        for token in set(window):
            value = f32(row[token] - f32(window.count(token) * frequency))
            value = f32(value - presence)
            if repeat != 1:
                value = f32(value / repeat) if value > 0 else f32(value * repeat)
            row[token] = value
        if p["dry_multiplier"] > 0:
            window = tokens[-p["dry_penalty_last_n"]:] if p["dry_penalty_last_n"] > 0 else tokens
            limit, allowed = behind_breaker(window, p["dry_breakers"]), p["dry_allowed_length"]
            if len(window) > allowed and limit >= allowed:
                for token, length in repeats(window, limit, allowed).items():
                    if [token] not in p["dry_breakers"]:
                        penalty = f32(p["dry_multiplier"]) * f32(p["dry_base"]) ** (length - allowed)
                        row[token] = f32(row[token] - f32(penalty))
        if p["temperature"] < 1e-6:
            return row.index(max(row))
        return self.draw(row, self.filter(row))

    def filter(self, row):
        p = self.p
        alive = [i for i in range(len(row)) if row[i] > -math.inf]
        if 0 < p["top_k"] < len(alive):
            kth = sorted((row[i] for i in alive), reverse=True)[p["top_k"] - 1]
            alive = [i for i in alive if row[i] >= kth]
        best = max(row[i] for i in alive)
        weight = lambda i: math.exp(row[i] - best)
        if f32(p["typical_p"]) < 1:
            total = math.fsum(map(weight, alive))
            surprise = lambda i: -math.log(weight(i) / total)
            entropy = math.fsum(weight(i) / total * surprise(i) for i in alive)
            alive = kept_mass(sorted(alive, key=lambda i: (round(abs(surprise(i) - entropy), 12), i)), weight, f32(p["typical_p"]))
            best = max(row[i] for i in alive)
        if f32(p["top_p"]) < 1:
            alive = kept_mass(sorted(alive, key=lambda i: (-row[i], i)), weight, f32(p["top_p"]))
            best = max(row[i] for i in alive)
        if f32(p["min_p"]) > 0:
            alive = [i for i in alive if row[i] >= best + math.log(f32(p["min_p"]))]
        if p["xtc_probability"] > 0 and len(alive) > 1 and self.uniform() <= f32(p["xtc_probability"]):
            total = math.fsum(map(weight, alive))
            above = sorted((i for i in alive if weight(i) / total >= f32(p["xtc_threshold"])), key=lambda i: (-row[i], i))
            alive = [i for i in alive if i not in above[:-1]]
        if f32(p["top_n_sigma"]) > 0:
            best = max(row[i] for i in alive)
            mean = math.fsum(row[i] for i in alive) / len(alive)
            sigma = math.sqrt(math.fsum((row[i] - mean) ** 2 for i in alive) / len(alive))
            alive = [i for i in alive if row[i] >= best - f32(p["top_n_sigma"]) * sigma]
        return alive

    def draw(self, row, alive):
        p = self.p
        best = max(row[i] for i in alive)
        if p["mirostat"]:
            alive = self.cut(row, sorted(alive, key=lambda i: (-row[i], i)))
            temperature = 1.0
        else:
            temperature = f32(p["temperature"])
        weights = [math.exp((row[i] - best) / temperature) for i in alive]
        total = math.fsum(weights)
        r, mass, chosen = self.uniform(), 0.0, len(alive) - 1
        for at, weight in enumerate(weights):
            mass += weight
            if mass / total >= r:
                chosen = at
                break
        if p["mirostat"]:
            self.mu -= f32(p["mirostat_eta"]) * (-math.log2(weights[chosen] / total) - f32(p["mirostat_tau"]))
        return alive[chosen]

    def cut(self, row, ordered):
        p = self.p
        weights = [math.exp(row[i] - row[ordered[0]]) for i in ordered]
        total = math.fsum(weights)
        probabilities = [w / total for w in weights]
        if p["mirostat"] == 2:
            return [i for i, q in zip(ordered, probabilities) if -math.log2(q) <= self.mu] or ordered[:1]
        n = min(p["mirostat_m"], len(ordered)) - 1
        t = [math.log((i + 2) / (i + 1)) for i in range(n)]
        b = [math.log(probabilities[i] / probabilities[i + 1]) for i in range(n)]
        squares = sum(x * x for x in t)
        s = sum(x * y for x, y in zip(t, b)) / squares if squares else 1.0
        s = s if s > 0 else 1.0
        epsilon = s - 1
        denominator = 1 - len(row) ** -epsilon
        k = ((epsilon * 2**self.mu) / denominator) ** (1 / s) if abs(denominator) >= 1e-12 else 1.0
        k = int(k) if k >= 1 else 1
        if k >= len(ordered):
            return ordered
        return [i for i in ordered if row[i] >= row[ordered[k - 1]]]


DEFAULTS = dict(seed=42, temperature=0.8, top_k=40, typical_p=1.0, top_p=0.95, min_p=0.0, xtc_probability=0.0, xtc_threshold=0.5,
                top_n_sigma=0.0, repeat_penalty=1.1, frequency_penalty=0.0, presence_penalty=0.0, repeat_last_n=64, dry_multiplier=0.0,
                dry_base=1.75, dry_allowed_length=2, dry_penalty_last_n=64, mirostat=0, mirostat_tau=5.0, mirostat_eta=0.1, mirostat_m=100,
                logit_bias=[], dry_breakers=[])
NO_FILTERS = dict(top_k=0, top_p=1.0, repeat_penalty=1.0)
CASES = {
    "defaults": {},
    "seed-0": dict(seed=0),
    "seed-max": dict(seed=MASK),
    "greedy-with-penalties": dict(temperature=0.0, repeat_penalty=1.3),
    "no-filters": dict(NO_FILTERS),
    "top-k-ties": dict(top_k=3, top_p=1.0, repeat_penalty=1.0),
    "top-p-whole-vocabulary": dict(top_k=0, top_p=0.5, temperature=1.5),
    "min-p": dict(top_k=0, top_p=1.0, min_p=0.25, temperature=2.0),
    "all-filters": dict(top_k=100, top_p=0.9, min_p=0.05, temperature=1.25),
    "frequency-presence": dict(frequency_penalty=0.5, presence_penalty=0.25, repeat_penalty=1.0),
    "negative-frequency": dict(frequency_penalty=-0.75, repeat_penalty=1.0),
    "short-window": dict(repeat_penalty=2.0, repeat_last_n=3, temperature=0.5),
    "whole-context": dict(repeat_penalty=2.0, repeat_last_n=-1),
    "logit-bias": dict(logit_bias=[(7, 12.0), (8, 12.5), (9, -100.0), (700, 12.25)], repeat_penalty=1.2, top_k=4),
    "typical": dict(NO_FILTERS, typical_p=0.2),
    "typical-behind-top-k": dict(typical_p=0.5, top_k=20),
    "xtc-always": dict(NO_FILTERS, xtc_probability=1.0, xtc_threshold=0.004),
    "xtc-half": dict(top_k=10, top_p=1.0, repeat_penalty=1.0, xtc_probability=0.5, xtc_threshold=0.1),
    "top-n-sigma": dict(NO_FILTERS, top_n_sigma=0.5),
    "top-n-sigma-behind-top-k": dict(top_k=50, top_n_sigma=1.0, temperature=2.0),
    "dry": dict(dry_multiplier=4.0, top_k=3, repeat_penalty=1.0, dry_allowed_length=1, dry_penalty_last_n=24),
    "dry-greedy": dict(dry_multiplier=0.8, temperature=0.0, repeat_penalty=1.0),
    "dry-greedy-breaker": dict(dry_multiplier=0.8, temperature=0.0, repeat_penalty=1.0, dry_penalty_last_n=-1, dry_breakers="best"),
    "mirostat-1": dict(NO_FILTERS, mirostat=1),
    "mirostat-1-few": dict(mirostat=1, mirostat_tau=2.0, mirostat_eta=0.5, mirostat_m=10),
    "mirostat-2": dict(NO_FILTERS, mirostat=2, mirostat_tau=3.0),
    "mirostat-2-fast": dict(mirostat=2, mirostat_tau=1.5, mirostat_eta=1.0),
    "everything": dict(logit_bias=[(1, 9.0), (2, 9.5)], frequency_penalty=0.25, dry_multiplier=1.5, dry_allowed_length=1, typical_p=0.95,
                       min_p=0.01, xtc_probability=0.5, xtc_threshold=0.08, top_n_sigma=2.0),
}


def text_of(value):
    if isinstance(value, list):
        return ";".join(",".join(map(str, item)) for item in value)
    return str(value)


def main():
    for number, (name, changes) in enumerate(CASES.items()):
        make = SplitMix64(1000 + number)
        row = [(make.next() >> 50) / 1024 - 8 for _ in range(N_VOCAB)]
        prompt = [make.next() % N_VOCAB for _ in range(80)]
        # Tokens that the sampler is likely to choose stand in the prompt too.
        best = sorted(range(N_VOCAB), key=lambda i: -row[i])
        prompt[-2:] = best[:2]
        if changes.get("dry_breakers") == "best":
            changes["dry_breakers"] = [[best[0], best[1]], [best[4]]]
        p = {**DEFAULTS, **changes}
        sampler, tokens, ids = Sampler(p), list(prompt), []
        for _ in range(N_DRAWS):
            ids.append(sampler.sample(row, tokens))
            tokens.append(ids[-1])
        print(name, *(f"{key}={text_of(value)}" for key, value in changes.items()), "prompt", *prompt[-2:], "ids", *ids)


main()
