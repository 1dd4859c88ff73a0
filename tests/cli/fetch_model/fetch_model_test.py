#!/usr/bin/env python3
"""scripts/fetch-model against a server of this process: lost connections, wrong lengths, wrong bytes, local files.

Usage: fetch_model_test.py PATH-OF-FETCH-MODEL CASE. One case per ctest entry. The model is 300,000 made-up bytes,
described in a table of its own (MINFER_MODEL_TABLE) without a PyPI source, so that nothing leaves this machine.
"""
import hashlib
import http.server
import os
import pty
import random
import subprocess
import sys
import tempfile
import threading
import time

SCRIPT, CASE = os.path.abspath(sys.argv[1]), sys.argv[2]
NAME, REPOSITORY = "tiny-model.gguf", "Maker/Tiny"
BYTES = random.Random(1).randbytes(300_000)


class Server(http.server.ThreadingHTTPServer):
    """Serves BYTES at the hub's path. `body`: what it serves instead; `drops`: how many answers stop half way."""

    def __init__(self, body=BYTES, drops=0, ranges=True):
        super().__init__(("127.0.0.1", 0), Handler)
        self.body, self.drops, self.ranges, self.requests = body, drops, ranges, []
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server, start = self.server, 0
        wanted = self.headers.get("Range")
        server.requests.append(wanted)
        if self.path != f"/{REPOSITORY}/resolve/main/{NAME}":
            self.send_error(404)
            return
        if wanted and server.ranges:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(server.body) - 1}/{len(server.body)}")
        else:
            self.send_response(200)
        rest = server.body[start:]
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if server.drops > 0:
            server.drops -= 1
            rest = rest[: len(rest) // 2]
        self.wfile.write(rest)

    def log_message(self, *_):
        pass


class Run:
    def __init__(self, folder, *args, stderr=subprocess.PIPE, **env):
        table = os.path.join(folder, "table.txt")
        if not os.path.exists(table):  # another run may be reading it
            with open(table, "w") as file:
                file.write(f"# a comment\n{NAME} {len(BYTES)} {hashlib.sha256(BYTES).hexdigest()} {REPOSITORY} -\n")
        self.models = os.path.join(folder, "models")
        self.process = subprocess.Popen(
            [SCRIPT, *args], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
            env={**os.environ, "MINFER_MODEL_TABLE": table, "MINFER_MODEL_DIR": self.models, "no_proxy": "127.0.0.1", **env})
        self.file = os.path.join(self.models, NAME)

    def wait(self):
        self.out, self.err = self.process.communicate(timeout=60)
        self.code = self.process.returncode
        return self

    def expect_model(self):
        assert self.code == 0, self.err
        assert self.out == self.file + "\n", self.out
        with open(self.file, "rb") as file:
            assert file.read() == BYTES
        left = sorted(os.listdir(self.models))
        assert left == [f".{NAME}.checked", f".{NAME}.lock", NAME], left

    def expect_refusal(self, *words):
        assert self.code == 1, (self.code, self.err)
        assert self.out == "", self.out
        for word in words:
            assert word in self.err, (word, self.err)
        assert not os.path.exists(self.file)


def fetch(folder, server, *args):
    return Run(folder, *args, HF_ENDPOINT=server.url).wait()


def case_download(folder):
    server = Server()
    fetch(folder, server).expect_model()
    assert server.requests == [None], server.requests
    # Now it is there: no request, nothing to say.
    again = fetch(folder, server)
    again.expect_model()
    assert again.err == "", again.err
    assert len(server.requests) == 1


def case_progress(folder):
    # A terminal sees a bar that is rewritten in place; a pipe sees none.
    piped = fetch(folder, Server())
    piped.expect_model()
    assert "%" not in piped.err and "\r" not in piped.err, piped.err
    os.mkdir(os.path.join(folder, "second"))
    ours, theirs = pty.openpty()
    run = Run(os.path.join(folder, "second"), stderr=theirs, HF_ENDPOINT=Server().url, TERM="xterm")
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the last writer has gone
            break
        if not piece:
            break
        seen += piece
    run.wait().expect_model()
    assert b"%" in seen and b"\r" in seen, seen


def case_resume(folder):
    server = Server(drops=1)
    fetch(folder, server).expect_model()
    assert server.requests == [None, "bytes=150000-"], server.requests


def case_resume_later(folder):
    server = Server(drops=3)
    run = fetch(folder, server)
    run.expect_refusal("lost three times", "a later call goes on")
    assert os.path.getsize(os.path.join(run.models, f".{NAME}.partial")) == 262500  # 1/2 + 1/4 + 1/8
    fetch(folder, server).expect_model()
    assert server.requests[-1] == "bytes=262500-", server.requests


def case_offline_keeps_partial(folder):
    server = Server(drops=3)
    fetch(folder, server).expect_refusal()
    run = Run(folder, HF_ENDPOINT="http://127.0.0.1:9").wait()  # nothing listens there
    run.expect_refusal("cannot be read", "Check the network", "--from FILE")
    assert os.path.getsize(os.path.join(run.models, f".{NAME}.partial")) == 262500


def case_no_ranges(folder):
    server = Server(drops=1, ranges=False)
    fetch(folder, server).expect_model()


def case_wrong_length(folder):
    for body in (BYTES[:-1], BYTES + b"x"):
        run = fetch(folder, Server(body))
        run.expect_refusal(f"it has {len(body)} bytes instead of {len(BYTES)}")
        assert not os.path.exists(os.path.join(run.models, f".{NAME}.partial"))


def case_wrong_byte(folder):
    body = bytearray(BYTES)
    body[200_000] ^= 1
    run = fetch(folder, Server(bytes(body)))
    run.expect_refusal("its SHA-256 is " + hashlib.sha256(body).hexdigest())
    assert not os.path.exists(os.path.join(run.models, f".{NAME}.partial"))
    fetch(folder, Server()).expect_model()


def case_stale_partial(folder):
    models = os.path.join(folder, "models")
    os.mkdir(models)
    with open(os.path.join(models, f".{NAME}.partial"), "wb") as file:
        file.write(b"something else" * 1000)
    fetch(folder, Server()).expect_model()


def case_several_at_once(folder):
    server = Server()
    runs = [Run(folder, HF_ENDPOINT=server.url) for _ in range(4)]
    for run in runs:
        run.wait().expect_model()
    assert len(server.requests) == 1, server.requests


def case_local_file(folder):
    source = os.path.join(folder, "other-name.bin")
    with open(source, "wb") as file:
        file.write(BYTES[:-1])
    Run(folder, "--from", source).wait().expect_refusal("other-name.bin is not the model", f"it has {len(BYTES) - 1} bytes")
    with open(source, "wb") as file:
        file.write(BYTES)
    Run(folder, "--from", source).wait().expect_model()


def case_local_folder(folder):
    os.mkdir(os.path.join(folder, "disk"))
    Run(folder, "--from", os.path.join(folder, "disk")).wait().expect_refusal("there is no file", NAME)
    with open(os.path.join(folder, "disk", NAME), "wb") as file:
        file.write(BYTES)
    Run(folder, "--from", os.path.join(folder, "disk"), "--all").wait().expect_model()


def case_damaged_in_place(folder):
    server = Server()
    run = fetch(folder, server)
    time.sleep(1.1)  # the stamp holds the time of change in seconds
    with open(run.file, "r+b") as file:
        file.seek(100)
        file.write(b"\0\0\0")
    again = fetch(folder, server)
    assert again.code == 1 and "Move it away" in again.err, again.err


def case_bad_calls(folder):
    run = Run(folder, "no-such-model").wait()
    run.expect_refusal("unknown model no-such-model", NAME)
    for args in (["--from"], ["--sideways"], ["a", "b"], ["--all", NAME]):
        run = Run(folder, *args).wait()
        assert run.code == 2 and "Usage: fetch-model" in run.err, (args, run.err)
    with open(os.path.join(folder, "a-file"), "w"):
        pass
    run = Run(folder, MINFER_MODEL_DIR=os.path.join(folder, "a-file/models")).wait()
    assert run.code == 1 and "set MINFER_MODEL_DIR to a folder that you can write to" in run.err, run.err


with tempfile.TemporaryDirectory() as temporary:
    globals()["case_" + CASE](temporary)
