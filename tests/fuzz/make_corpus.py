"""make_corpus.py FOLDER: the first inputs of fuzz_model_file, from tests/data: the malformed files, the smaller tiny models, the chat
templates inside a model that loads, and a model in two parts."""
import json
import pathlib
import struct
import sys

ALIGNMENT = 32
KEYS_BEGIN = 24  # behind magic, version and the two counts

data = pathlib.Path(__file__).resolve().parent.parent / "data"
out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
base = (data / "malformed/base_ok.gguf").read_bytes()
BASE_HEADER_END = 6629  # of base_ok.gguf: the tensor data begins at the next multiple of the alignment


def rebuild(parts):
    made = b""
    for part in parts:
        if isinstance(part, str):
            made += bytes.fromhex(part)
        elif isinstance(part[0], str):
            made += bytes.fromhex(part[0]) * part[1]
        else:
            made += base[part[0] : part[0] + part[1]]
    return made


def padded(header):
    return header + b"\0" * (-len(header) % ALIGNMENT)


def text(value):
    return struct.pack("<Q", len(value)) + value


def key(name, value_type, value):
    return text(name.encode()) + struct.pack("<I", value_type) + value


def base_with(keys):
    """base_ok.gguf with more keys in front of its own."""
    version, n_tensors, n_keys = struct.unpack_from("<IQQ", base, 4)
    header = base[:4] + struct.pack("<IQQ", version, n_tensors, n_keys + len(keys)) + b"".join(keys) + base[KEYS_BEGIN:BASE_HEADER_END]
    return padded(header) + base[BASE_HEADER_END + -BASE_HEADER_END % ALIGNMENT :]


def split_keys(number):
    return [key("split.no", 2, struct.pack("<H", number)), key("split.count", 2, struct.pack("<H", 2))]


for line in (data / "malformed/files.jsonl").read_text().splitlines():
    entry = json.loads(line)
    (out / entry["file"]).write_bytes(rebuild(entry["parts"]))
for model in (data / "tiny").glob("*.gguf"):
    if model.stat().st_size < 200_000:
        (out / model.name).write_bytes(model.read_bytes())
for template in (data / "templates").glob("*.jinja"):
    (out / f"{template.stem}.gguf").write_bytes(base_with([key("tokenizer.chat_template", 8, text(template.read_bytes()))]))
second = padded(b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + b"".join(split_keys(1)))
(out / "two_parts").write_bytes(base_with(split_keys(0)) + b"\nPART\n" + second)
