"""The table of scripts/bench-peers: ratios inside rounds, the better setting of a peer, and which way each figure counts."""
import importlib.machinery
import importlib.util
import pathlib
import sys

sys.dont_write_bytecode = True  # nothing is left beside the script
path = pathlib.Path(__file__).resolve().parents[3] / "scripts/bench-peers"
loader = importlib.machinery.SourceFileLoader("bench_peers", str(path))
bench = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_peers", loader))
loader.exec_module(bench)

rows = []


def add(engine, setting, figure, values):
    for number, value in enumerate(values):
        rows.append({"model": "m", "round": number, "engine": engine, "setting": setting, "figure": figure, "value": value})


add("minfer", "", "pp512", [100, 200, 300])
add("llama.cpp", "default", "pp512", [50, 100, 100])
add("ik_llama.cpp", "no repacking", "pp512", [10, 10, 10])
add("ik_llama.cpp", "no repacking, fa", "pp512", [80, 80, 80])
add("minfer", "", "start s", [0.5, 0.5, 0.25])
add("llama.cpp", "default", "start s", [1.0, 2.0, 1.0])
add("ik_llama.cpp", "no repacking", "start s", [0.4, 0.4, 0.4])
add("ik_llama.cpp", "no repacking, fa", "start s", [0.6, 0.6, 0.6])

lines = bench.table(rows, "m").split("\n")
assert lines[0] == "| m | minfer | llama.cpp | ratio (95 %) | ik_llama.cpp | ratio (95 %) |", lines[0]
# Rates: ours / theirs, 2, 2, 3; and 1.25, 2.5, 3.75 against the setting that is the faster one.
assert lines[2] == "| pp512 | 200 | 100 | 2.00 (2.00 to 3.00) | 80 | 2.50 (1.25 to 3.75) |", lines[2]
# Times: theirs / ours, 2, 4, 4; and 0.8, 0.8, 1.6.
assert lines[3] == "| start s | 0.5 | 1 | 4.00 (2.00 to 4.00) | 0.4 | 0.80 (0.80 to 1.60) |", lines[3]
assert bench.interval([3.0, 1.0]) == (1.0, 3.0)

assert bench.parse_test("tg64@2048") == ("tg64@2048", "tg", 64, 2048)
assert bench.parse_test("start") == ("start", "start", 0, 0)
for wrong in ("pp", "pp0", "pp512@8", "xx5", "tg"):
    try:
        bench.parse_test(wrong)
    except bench.argparse.ArgumentTypeError:
        continue
    raise AssertionError(f"'{wrong}' was taken")
