"""The table of scripts/bench-peers: ratios inside rounds, the better setting of a peer, and which way each figure counts."""
import argparse
import importlib.machinery
import importlib.util
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing is left beside the script
path = pathlib.Path(__file__).resolve().parents[3] / "scripts/bench-peers"
loader = importlib.machinery.SourceFileLoader("bench_peers", str(path))
bench = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_peers", loader))
loader.exec_module(bench)

rows = []


def add(engine, setting, figure, values):
    for number, value in enumerate(values):
        rows.append({"model": "m", "round": number, "engine": engine, "setting": setting, "figure": figure, "value": value, "test": figure,
                     "noisy": "no", "kept": "yes"})


add("minfer", "", "pp512", [100, 200, 300])
add("llama.cpp", "default", "pp512", [50, 100, 100])
add("ik_llama.cpp", "no repacking", "pp512", [10, 10, 10])
add("ik_llama.cpp", "no repacking, fa", "pp512", [80, 80, 80])
add("minfer", "", "start s", [0.5, 0.5, 0.25])
add("llama.cpp", "default", "start s", [1.0, 2.0, 1.0])
add("ik_llama.cpp", "no repacking", "start s", [0.4, 0.4, 0.4])
add("ik_llama.cpp", "no repacking, fa", "start s", [0.6, 0.6, 0.6])

rows.append({**rows[0], "value": 1, "noisy": "yes", "kept": "no"})  # a try that was repeated does not count
rows[1]["noisy"] = "yes"

lines = bench.table(rows, "m").split("\n")
assert lines[0] == "| m | minfer | llama.cpp | ratio (95 %) | ik_llama.cpp | ratio (95 %) |", lines[0]
# Rates: ours / theirs, 2, 2, 3; and 1.25, 2.5, 3.75 against the setting that is the faster one.
assert lines[2] == "| pp512 | 200 | 100 | 2.00 (2.00 to 3.00) | 80 | 2.50 (1.25 to 3.75) |", lines[2]
# Times: theirs / ours, 2, 4, 4; and 0.8, 0.8, 1.6.
assert lines[3] == "| start s | 0.5 | 1 | 4.00 (2.00 to 4.00) | 0.4 | 0.80 (0.80 to 1.60) |", lines[3]
assert bench.interval([3.0, 1.0]) == (1.0, 3.0)

# Of 24 runs that count one was noisy.
args = argparse.Namespace(threads=2)
foot = bench.footer(rows, args).split("\n")
assert "; 1 of 24 runs were noisy" in foot[0] and "2 threads; " in foot[0] and all(p.replace("==", " ") in foot[0] for p in bench.PACKAGES), foot
assert foot[1].startswith("`scripts/bench-peers"), foot

assert not bench.is_noisy(0.005, 3.0, 3.05)
assert not bench.is_noisy(0, 0, 0)  # a clock that cannot be measured
assert bench.is_noisy(0.006, 3.0, 3.0)
assert bench.is_noisy(0, 3.0, 2.9)
assert bench.is_noisy(0, 2.9, 3.0)


def attempts(noise):
    """What `tries` makes of runs that are noisy or not in turn: numbers of the runs with whether they were kept."""
    number = iter(range(len(noise)))

    def attempt():
        n = next(number)
        return {"pp8": n}, {"noisy": noise[n]}

    def result(spare):
        done, left = bench.tries(attempt, spare)
        return [(figures["pp8"], conditions["kept"]) for figures, conditions in done], left

    return result


assert attempts(["no"])(5) == ([(0, "yes")], 5)
assert attempts(["yes", "no"])(5) == ([(0, "no"), (1, "yes")], 4)
assert attempts(["yes", "yes", "yes"])(5) == ([(0, "no"), (1, "no"), (2, "yes")], 3)
assert attempts(["yes"])(0) == ([(0, "yes")], 0)  # no repeats are left

# A run that sleeps uses no CPU time; its clock is that of a program in the place of minfer-bench.
with tempfile.TemporaryDirectory() as folder:
    program = pathlib.Path(folder) / "minfer-bench"
    program.write_text("#!/bin/sh\necho 3.25\n")
    program.chmod(0o755)
    figures, conditions = bench.watched(lambda: {"pp8": 7.0}, argparse.Namespace(bin=pathlib.Path(folder)))
assert figures == {"pp8": 7.0} and (conditions["clock_before_ghz"], conditions["clock_after_ghz"]) == (3.25, 3.25), conditions

assert bench.parse_test("tg64@2048") == ("tg64@2048", "tg", 64, 2048)
assert bench.parse_test("start") == ("start", "start", 0, 0)
for wrong in ("pp", "pp0", "pp512@8", "xx5", "tg"):
    try:
        bench.parse_test(wrong)
    except bench.argparse.ArgumentTypeError:
        continue
    raise AssertionError(f"'{wrong}' was taken")
