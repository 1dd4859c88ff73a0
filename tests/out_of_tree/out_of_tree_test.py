#!/usr/bin/env python3
"""The installed product as its users meet it: programs of a prefix that was moved, plugins of other projects built against it.

Usage: out_of_tree_test.py SOURCE-DIR BUILD-DIR WORK-DIR CASE [ARGUMENT...]. One case per ctest entry; `install` comes first and
leaves the prefix that the others use.
"""
import filecmp
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

SOURCE, BUILD, WORK, CASE, *ARGUMENTS = sys.argv[1:]
HERE = os.path.join(SOURCE, "tests", "out_of_tree")
PREFIX = os.path.join(WORK, "moved prefix äö")
TINY = os.path.join(SOURCE, "tests", "data", "tiny", "qwen2_Q4_K.gguf")


def run(*command, code=0, cwd=None, **env):
    """Runs a command in a clean environment; what it printed on stdout and stderr, once its exit code is the one expected."""
    keep = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ}
    done = subprocess.run(command, cwd=cwd, env={**keep, "LC_ALL": "C.UTF-8", **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", check=False)
    assert done.returncode == code, f"{command} returned {done.returncode}, expected {code}:\n{done.stdout}"
    return done.stdout


def program(name, prefix=PREFIX):
    return os.path.join(prefix, "bin", name)


def contains(text, *parts):
    for part in parts:
        assert part in text, f"expected {part!r} in:\n{text}"


def build_project(source, folder, *options, **env):
    """Configures and builds a project against PREFIX alone, warnings as errors; returns the folder of its plugins."""
    run("cmake", "-G", "Ninja", "-S", source, "-B", folder, f"-DCMAKE_PREFIX_PATH={PREFIX}", "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror", *options, **env)
    run("cmake", "--build", folder, "-j", "2")
    return os.path.join(folder, "bin", "plugins")


def compilers(cxx):
    """CC and CXX for the family of a C++ compiler; skips the test where it is not installed."""
    c = {"g++": "gcc", "clang++": "clang"}[cxx]
    for suffix in ("", "-14"):
        if shutil.which(c + suffix) and shutil.which(cxx + suffix):
            return {"CC": c + suffix, "CXX": cxx + suffix}
    print(f"skipped: {cxx} is not installed")
    sys.exit(77)


def with_architecture(name, folder):
    """A copy of TINY that names another architecture, of as many letters so that nothing moves."""
    with open(TINY, "rb") as file:
        data = file.read()
    key = b"general.architecture" + struct.pack("<IQ", 8, 5)
    assert data.count(key + b"qwen2") == 1 and data.count(b"qwen2.") >= 8 and len(name) == 5
    data = data.replace(key + b"qwen2", key + name.encode()).replace(b"qwen2.", name.encode() + b".")
    path = os.path.join(folder, f"{name}.gguf")
    with open(path, "wb") as file:
        file.write(data)
    return path


def logits(folder, model, *options):
    """All logits of seven positions, prefill and decode steps, as a file; and what was printed."""
    out = tempfile.mkstemp(dir=folder, suffix=".f32")[1]
    text = run(program("minfer-eval"), "logits", "-m", model, "--ids", "1,5,90,7,300,2,44", "--last", "7", "--batch", "3", "--raw", out,
               *options)
    assert os.path.getsize(out) == 7 * 307 * 4, text
    return out, text


def same(a, b):
    assert filecmp.cmp(a, b, shallow=False), "the logits are other bits"


def install(_):
    shutil.rmtree(WORK, ignore_errors=True)
    first = os.path.join(WORK, "prefix with spaces äö")
    run("cmake", "--install", BUILD, "--prefix", first)
    os.rename(first, PREFIX)
    for path in ("bin/minfer-run", "bin/minfer-plugins", "include/minfer/abi/plugin.h", "include/minfer/abi/abi_hash.h",
                 "include/minfer/plugin/backend.hpp", "lib/minfer/plugins/minfer-backend-cpu.so", "share/minfer/configs/default.yaml",
                 "lib/cmake/minfer/minferConfig.cmake", "include/minfer/runtime.hpp", "lib/libminfer.so"):
        assert os.path.isfile(os.path.join(PREFIX, path)), f"{path} is not installed"
    for folder, _, files in os.walk(PREFIX):
        for name in files:
            with open(os.path.join(folder, name), "rb") as file:
                data = file.read()
            for place in (SOURCE, BUILD, first):
                # A clone in /minfer is not named by lib/minfer or bin/minfer-run.
                alone = rb"(?<![\w.~-])%s(?![\w.-])" if place.count("/") == 1 else b"%s"
                found = re.search(alone % re.escape(place.encode()), data)
                assert not found, f"{name} names {place}: {data[max(0, found.start() - 40):found.end() + 40]}"


def everywhere(folder):
    plugins = os.path.join(PREFIX, "lib", "minfer", "plugins")
    os.symlink(program("minfer-plugins"), os.path.join(folder, "listed"))
    os.symlink(program("minfer-eval"), os.path.join(folder, "evaluated"))
    path = program("") + ":/usr/bin:/bin"
    ways = [
        run(program("minfer-plugins"), cwd="/"),
        run("./minfer-plugins", cwd=program("")),
        run("../bin/minfer-plugins", cwd=os.path.join(PREFIX, "lib")),
        run(os.path.join(folder, "listed"), cwd="/"),
        run("./listed", cwd=folder),
        run("minfer-plugins", cwd=folder, PATH=path),
        run("listed", cwd="/", PATH=folder + ":/usr/bin:/bin"),
    ]
    assert all(way == ways[0] for way in ways), ways
    for name in ("backend  cpu", "backend  null", "arch     qwen2"):
        assert re.search(rf"^{name}  \S+  found\n {{9}}{re.escape(plugins)}/", ways[0], re.MULTILINE), ways[0]

    configs = os.path.join(PREFIX, "share", "minfer", "configs")
    arguments = ("logits", "--config", os.path.join(configs, "cpu-only.yaml"), "-m", TINY, "--ids", "1,2,3")
    expected = run(program("minfer-eval"), *arguments, cwd="/")
    contains(expected, '"n_vocab":307')
    assert run("./evaluated", *arguments, cwd=folder) == expected
    assert run("minfer-eval", *arguments, cwd=folder, PATH=path) == expected
    contains(run(program("minfer-run"), "-m", TINY, "--backend", "cpu", "--no-template", "-n", "4", "x", cwd=folder), "Generated: 4 tokens")


def package_errors(folder):
    def configure(*lines, code=1):
        with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write("cmake_minimum_required(VERSION 3.22)\nproject(x LANGUAGES C)\n" + "\n".join(lines))
        return run("cmake", "-G", "Ninja", "-S", folder, "-B", os.path.join(folder, "build"), f"-DCMAKE_PREFIX_PATH={PREFIX}", code=code)

    found = "find_package(minfer REQUIRED)"
    version = re.search(r"project\(minfer VERSION (\d+)\.(\d+)", open(os.path.join(SOURCE, "CMakeLists.txt"), encoding="utf-8").read())
    major, minor = version.groups()
    configure(f"find_package(minfer {major}.{minor} REQUIRED)", "if(NOT TARGET minfer::sdk)", "message(FATAL_ERROR no)", "endif()", code=0)
    contains(configure(f"find_package(minfer {major}.{int(minor) + 1} REQUIRED)"), "requested version", "minferConfig.cmake, version: ")
    contains(configure(found, "minfer_add_plugin(KIND driver NAME x SOURCES x.c)"), "needs KIND backend|arch")
    contains(configure(found, "minfer_add_plugin(KIND backend NAME X SOURCES x.c)"), "NAME [a-z0-9_]+")
    contains(configure(found, f"minfer_add_plugin(KIND backend NAME {'x' * 33} SOURCES x.c)"), "at most 32")
    contains(configure(found, "minfer_add_plugin(KIND backend NAME x SOURCES x.c)"), "give VERSION")
    # A library that forgets its one function builds, and is refused with the name of the function.
    with open(os.path.join(folder, "x.c"), "w", encoding="utf-8") as file:
        file.write("int not_a_plugin;\n")
    configure(found, "enable_testing()", "minfer_add_plugin(KIND backend NAME x VERSION 1.0.0 SOURCES x.c)", code=0)
    build = os.path.join(folder, "build")
    run("cmake", "--build", build)
    contains(run("ctest", "--test-dir", build, "--output-on-failure", code=8), "must export minfer_plugin_query_v1 alone, it exports:")
    contains(run(program("minfer-plugins"), "--plugin-dir", os.path.join(build, "bin", "plugins"), "--why", "x", code=1),
             "skipped, entry: ", "minfer_plugin_query_v1")


def backend(folder):
    name, cxx = ARGUMENTS
    plugins = build_project(os.path.join(HERE, name), os.path.join(folder, "build"), **compilers(cxx))
    contains(run("ctest", "--test-dir", os.path.join(folder, "build")), "100% tests passed, 0 tests failed out of 1")
    listed = run(program("minfer-plugins"), "--plugin-dir", plugins, "--why", name)
    assert re.search(rf"^backend  {name}  0\.3\.0  ready\n {{9}}{re.escape(plugins)}/", listed, re.MULTILINE), listed

    alone, _ = logits(folder, TINY, "--backend", "cpu")
    together, text = logits(folder, TINY, "--backend", f"{name},cpu", "--plugin-dir", plugins)
    same(alone, together)
    # Three steps of one layer, each with two sums and a product.
    contains(text, f"backend: {name} (adds and multiplies)", f"{name} ran 9 operations", f"silu (weight type F32) is not supported on {name}")
    together, text = logits(folder, TINY, "--backend", f"{name},cpu", "--plugin-dir", plugins, "--backend-option", f"{name}.multiply=false")
    same(alone, together)
    contains(text, f"backend: {name} (adds)\n", f"{name} ran 6 operations")
    options = ("logits", "-m", TINY, "--ids", "1", "--backend", f"{name},cpu", "--plugin-dir", plugins, "--backend-option")
    contains(run(program("minfer-eval"), *options, f"{name}.multiply=maybe", code=1), "error: ", "option multiply", "neither true nor false")
    contains(run(program("minfer-eval"), *options, f"{name}.speed=9", code=1), "error: ", "speed")


def architecture(folder):
    (cxx,) = ARGUMENTS
    plugins = build_project(os.path.join(HERE, "tulip"), os.path.join(folder, "build"), **compilers(cxx))
    contains(run("ctest", "--test-dir", os.path.join(folder, "build")), "100% tests passed, 0 tests failed out of 1")
    tulip = with_architecture("tulip", folder)
    unknown = run(program("minfer-eval"), "logits", "-m", tulip, "--ids", "1", "--backend", "cpu", code=1)
    contains(unknown, "error: ", "general.architecture is 'tulip'")

    listed = run(program("minfer-plugins"), "--plugin-dir", plugins, "--why", "tulip")
    assert re.search(rf"^arch     tulip  0\.3\.0  ready\n {{9}}{re.escape(plugins)}/", listed, re.MULTILINE), listed
    options = ("--backend", "cpu", "--plugin-dir", plugins)
    expected, text = logits(folder, TINY, *options)
    same(expected, logits(folder, tulip, *options)[0])
    assert "not used" not in text, text
    if cxx != "g++":
        return

    # The same without its biases: other logits, and a line that says what of the file was left aside.
    source = os.path.join(folder, "without biases")
    shutil.copytree(os.path.join(HERE, "tulip"), source)
    with open(os.path.join(source, "tulip.cpp"), encoding="utf-8") as file:
        lines = [line for line in file if ".bias" not in line]
    with open(os.path.join(source, "tulip.cpp"), "w", encoding="utf-8") as file:
        file.writelines(lines)
    other, text = logits(folder, tulip, "--backend", "cpu", "--plugin-dir", build_project(source, os.path.join(folder, "second build")))
    assert not filecmp.cmp(expected, other, shallow=False)
    contains(text, "3 of 14 tensors of the file are not used by its architecture: 'blk.0.attn_q.bias', 'blk.0.attn_k.bias'")


def embedding(folder):
    shutil.copy(os.path.join(PREFIX, "share", "minfer", "examples", "embed.cpp"), folder)
    with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write("cmake_minimum_required(VERSION 3.22)\nproject(embed LANGUAGES CXX)\nfind_package(minfer REQUIRED)\n"
                   "add_executable(embed embed.cpp)\ntarget_link_libraries(embed PRIVATE minfer::runtime)\n")
    build = os.path.join(folder, "build")
    build_project(folder, build)
    contains(run(os.path.join(build, "embed"), TINY, "abc", cwd="/"), "two at once: the same text", "stopped: ")
    exported = run("nm", "-DC", "--defined-only", os.path.join(PREFIX, "lib", "libminfer.so"))
    names = re.findall(r"^[0-9a-f]+ [A-Z] (.*)$", exported, re.MULTILINE)
    other = [name for name in names if not re.match(r"minfer::(runtime::|Error::|error_code_name)", name)]
    assert names and not other, other


def readme(folder):
    """Writes each file and runs each command that the section shows, from an empty folder, with ~/minfer as the prefix."""
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        text = file.read()
    files, commands = {}, []
    for language, block in re.findall(r"^```(cmake|cpp|sh)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        named = re.match(r"(?:#|//) ([a-z]+)/([A-Za-z.]+)", block)
        if named:
            files["/".join(named.groups())] = block
        elif "-S mine " in block:
            commands.append(block)
    assert sorted(files) == ["mine/CMakeLists.txt", "mine/mine.cpp", "petal/CMakeLists.txt", "petal/petal.cpp"], sorted(files)
    assert len(commands) == 1, commands
    shown = sum(len(files[name].splitlines()) for name in ("mine/CMakeLists.txt", "mine/mine.cpp")) + len(commands[0].splitlines())
    assert shown <= 40, f"the backend takes {shown} lines"

    shutil.copytree(PREFIX, os.path.join(folder, "minfer"))
    for name, block in files.items():
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(block)
    shutil.copy(TINY, os.path.join(folder, "model.gguf"))
    text = run("bash", "-e", "-c", commands[0], cwd=folder, HOME=folder)
    assert re.search(r"^[1-9]\d* passed, 0 failed, ", text, re.MULTILINE), text
    contains(text, "backend: mine (adds, and nothing else)", "rms_norm (weight type F32) is not supported on mine, runs on cpu", "Stopped: -n reached")
    assert "add (weight" not in text, text

    run("bash", "-e", "-c", "\n".join(commands[0].replace("mine", "petal").splitlines()[:2]), cwd=folder, HOME=folder)
    prefix = os.path.join(folder, "minfer")
    contains(run(program("minfer-plugins", prefix), "--why", "mine"), "backend  mine  1.0.0  ready")
    contains(run(program("minfer-plugins", prefix), "--why", "petal"), "arch     petal  1.0.0  ready")
    arguments = ("logits", "--ids", "1,2,3", "--backend", "cpu", "-m")
    expected = run(program("minfer-eval"), *arguments, TINY)
    assert run(program("minfer-eval", prefix), *arguments, with_architecture("petal", folder)) == expected


def script(name, *arguments, root=SOURCE, **options):
    return run(sys.executable, os.path.join(root, "scripts", name), *arguments, **options)


def tree_with_templates(folder):
    """A small copy of the tree: the scripts work on the tree that they lie in."""
    root = os.path.join(folder, "tree")
    os.makedirs(os.path.join(root, "scripts"))
    for name in ("new-backend", "new-architecture"):
        shutil.copy(os.path.join(SOURCE, "scripts", name), os.path.join(root, "scripts", name), follow_symlinks=False)
    for template in ("plugins/null", "models/qwen2"):
        shutil.copytree(os.path.join(SOURCE, template), os.path.join(root, template))
    return root


def templates(folder):
    root = tree_with_templates(folder)
    contains(script("new-backend", "my_chip", root=root, cwd=root), "plugins/my_chip: CMakeLists.txt, my_chip_backend.cpp")
    contains(script("new-architecture", "daisy", root=root, cwd=root), "models/daisy: CMakeLists.txt, daisy.cpp")
    own = os.path.join(folder, "a folder of its own")
    contains(script("new-backend", "other_chip", "--out-of-tree", own), "other_chip_backend.cpp")
    for place in (os.path.join(root, "plugins", "my_chip"), os.path.join(root, "models", "daisy"), own):
        for name in os.listdir(place):
            with open(os.path.join(place, name), encoding="utf-8") as file:
                text = file.read()
            assert not re.search(r"\bnull\b|Null|[Qq]wen", text), f"{name} still names its template:\n{text}"

    # The folders of the tree hold what the tree's own build adds; here a project that finds minfer does.
    with open(os.path.join(root, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write("cmake_minimum_required(VERSION 3.22)\nproject(tree VERSION 0.1.0 LANGUAGES CXX)\nfind_package(minfer REQUIRED)\n"
                   "add_subdirectory(plugins/my_chip)\nadd_subdirectory(models/daisy)\n")
    plugins = build_project(root, os.path.join(folder, "build"))
    others = build_project(own, os.path.join(folder, "build of its own"))
    for place, line in ((plugins, "backend  my_chip"), (plugins, "arch     daisy"), (others, "backend  other_chip")):
        contains(run(program("minfer-plugins"), "--plugin-dir", place, "--why", line.split()[1]), f"{line}  0.1.0  ready")
    options = ("--backend", "cpu", "--plugin-dir", plugins)
    same(logits(folder, TINY, *options)[0], logits(folder, with_architecture("daisy", folder), *options)[0])


def bad_names(folder):
    root = tree_with_templates(folder)

    def refused(*arguments, tool="new-backend"):
        text = script(tool, *arguments, root=root, cwd=root, code=1)
        assert text.startswith("error: ") and text.count("\n") == 1, text
        return text

    for name in ("", "Null", "my-chip", "9lives", "_x", "a/b", "..", "x" * 33, "ä"):
        contains(refused(name), f"'{name}' is no name for a plugin")
    contains(refused("null"), "plugins/null exists")
    contains(refused("qwen2"), "models/qwen2 exists")
    contains(refused("qwen2", tool="new-architecture"), "models/qwen2 exists")
    contains(refused("chip", "--out-of-tree", "plugins"), "plugins exists and is no empty folder")
    assert sorted(os.listdir(os.path.join(root, "plugins"))) == ["null"] and sorted(os.listdir(os.path.join(root, "models"))) == ["qwen2"]


def package(folder):
    """scripts/package tries what it made; here what its name and its list say."""
    path = run("bash", os.path.join(SOURCE, "scripts", "package"), BUILD, folder).strip()
    name = os.path.basename(path)
    assert re.fullmatch(r"minfer-\d+\.\d+\.\d+-linux-[a-z0-9_]+\.tar\.gz", name) and os.listdir(folder) == [name], path
    listed = run("tar", "-tzf", path).splitlines()
    top = name.removesuffix(".tar.gz")
    assert all(entry.startswith(top + "/") for entry in listed), listed
    for entry in ("bin/minfer-run", "lib/minfer/plugins/minfer-backend-cpu.plugin.yaml", "share/minfer/configs/default.yaml"):
        assert f"{top}/{entry}" in listed, f"{entry} is missing: {listed}"


def main():
    os.makedirs(WORK, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=WORK if CASE != "install" else None) as folder:
        globals()[CASE](folder)


main()
