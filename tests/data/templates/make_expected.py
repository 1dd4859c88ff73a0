#!/usr/bin/env python3
"""Renders the templates of this folder and the snippets of snippets.py with Jinja2 3.1.6 in the set-up that transformers uses for
chat templates, and writes what the engine must produce byte for byte: snippets.json and chats.json.
Run in this folder: python3 make_expected.py"""
import datetime
import functools
import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.sandbox
from jinja2 import nodes

from conversations import CONVERSATIONS, MORE_CONVERSATIONS, MORE_VARIANT, VARIANTS
from snippets import CONTEXT, SNIPPETS

assert jinja2.__version__ == "3.1.6", jinja2.__version__
HERE = pathlib.Path(__file__).parent
NOW = datetime.datetime(2024, 3, 5, 9, 7, 3)


class Generation(jinja2.ext.Extension):
    """{% generation %}: prints its body, in a scope of its own."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


class Refused(Exception):
    pass


def raise_exception(message):
    raise Refused(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


@functools.lru_cache
def environment(mutable=False):
    kind = jinja2.sandbox.SandboxedEnvironment if mutable else jinja2.sandbox.ImmutableSandboxedEnvironment
    env = kind(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.LoopControlExtension])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


@functools.lru_cache
def compiled(source, mutable):
    return environment(mutable).from_string(source)


def render(source, variables, mutable=False):
    """{"out": text}, or {"error": message}: the template must be refused or fail; a raise_exception message must be in the error.
    What the immutable sandbox refuses (list.append and the like) is rendered by the plain one."""
    try:
        return {"out": compiled(source, mutable).render(**variables)}
    except Refused as e:
        return {"error": str(e)}
    except Exception:
        return {"error": ""} if mutable else render(source, json.loads(json.dumps(variables)), mutable=True)


def write(name, rows):
    text = "[\n" + ",\n".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in rows) + "\n]\n"
    (HERE / name).write_text(text, encoding="utf-8")


def main():
    rows = [{"context": CONTEXT}]
    for source in SNIPPETS:
        rows.append({"in": source, **render(source, CONTEXT)})
    write("snippets.json", rows)

    rendered = [(i, variables) for i in range(len(CONVERSATIONS)) for variables in VARIANTS]
    rendered += [(len(CONVERSATIONS) + i, MORE_VARIANT) for i in range(len(MORE_CONVERSATIONS))]
    conversations = CONVERSATIONS + MORE_CONVERSATIONS
    chats = [{"conversations": conversations}]
    for path in sorted(HERE.glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        for i, variables in rendered:
            all_variables = {"tools": None, "documents": None, **conversations[i], **variables}
            chats.append({"template": path.name, "conversation": i, "variables": variables, **render(source, all_variables)})
    write("chats.json", chats)
    failed = sum("error" in c for c in chats)
    print(len(rows) - 1, "snippets,", sum("error" in r for r in rows), "errors;", len(chats) - 1, "chats,", failed, "errors")


if __name__ == "__main__":
    main()
