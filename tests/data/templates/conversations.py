"""Conversations that every chat template is rendered with: system prompts, several turns, tools, tool calls, absent and null content."""

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather in a city. \"Quoted\" <b>&</b> é",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Name of the city"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
                "days": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
            },
            "required": ["city"],
        },
    },
}
NOTHING = {"type": "function", "function": {"name": "no_arguments", "description": "", "parameters": {"type": "object", "properties": {}}}}


def call(name, arguments, id):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


SYSTEM = {"role": "system", "content": "You are terse.\n"}
USER = {"role": "user", "content": "  What's the weather in Zürich? 🌦\n"}
CALLED = {"role": "assistant", "tool_calls": [call("get_weather", {"city": "Zürich", "days": [1, 2], "deep": {"a": None, "b": 1.5}}, "call00001")]}
RESULT = {"role": "tool", "name": "get_weather", "tool_call_id": "call00001", "content": "{\"t\": 7}"}
ANSWER = {"role": "assistant", "content": "7 °C <|im_end|>"}

CONVERSATIONS = [
    {"messages": [USER]},
    {"messages": [SYSTEM, USER]},
    {"messages": [SYSTEM, USER, ANSWER, {"role": "user", "content": "Thanks"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nBye"}]},
    {"messages": [SYSTEM, USER], "tools": [WEATHER, NOTHING]},
    {"messages": [USER, {**CALLED, "content": None}, RESULT, ANSWER, {"role": "user", "content": "And\r\ntomorrow?"}], "tools": [WEATHER]},
    {"messages": [USER, CALLED, RESULT], "tools": [WEATHER]},
    {"messages": [USER, {**CALLED, "content": ""}, RESULT, RESULT], "tools": [WEATHER]},
    {"messages": [USER, {"role": "assistant", "content": "Both.", "reasoning_content": "two calls",
                         "tool_calls": [call("get_weather", {"city": "A"}, "call00001"), call("no_arguments", {}, "call00002")]},
                  RESULT, {**RESULT, "tool_call_id": "call00002", "name": "no_arguments"}], "tools": [WEATHER, NOTHING]},
    {"messages": [USER, {"role": "assistant", "content": None, "tool_calls": [call("get_weather", "{\"city\": \"B\"}", "call00001")]}, RESULT]},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "part one"}, {"type": "text", "text": "part two"}]}]},
    {"messages": [USER, USER, ANSWER, ANSWER]},
    {"messages": []},
]

VARIANTS = [
    {"add_generation_prompt": False, "bos_token": "<s>", "eos_token": "</s>"},
    {"add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>", "enable_thinking": False},
]

# Rendered with one more variant only: nested schemas, reasoning beside tool calls, arguments as text, other roles, awkward text.
CODE = {"type": "function", "function": {"name": "run_code", "description": "Runs code.\nTwo lines \\ of it", "parameters": {
    "type": "object",
    "properties": {"code": {"type": "string"}, "options": {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}},
                   "required": ["tags"]}, "limit": {"type": ["number", "null"], "maximum": 1e20, "default": 0.5}},
    "required": ["code"]}, "return": {"type": "string"}}}

MORE_CONVERSATIONS = [
    {"messages": [SYSTEM, USER, {"role": "assistant", "content": "", "reasoning_content": "look it up\n", "tool_calls": [call("run_code", {"code": "print(1)\n", "limit": None}, "call00001")]},
                  RESULT, {"role": "assistant", "content": "<think>\nread it\n</think>\n\nIt is 7."}, {"role": "user", "content": "Sure?"},
                  {"role": "assistant", "content": "Yes.", "reasoning_content": "sure"}], "tools": [CODE]},
    {"messages": [{"role": "system", "content": [{"type": "text", "text": "parts"}]}, {"role": "user", "content": "a\r\nb \u2028 {{ x }} {% y %} <s>[INST] \u001b & < > ' \" 日本 "}]},
    {"messages": [{"role": "developer", "content": "dev"}, {"role": "user", "content": ""}, {"role": "assistant", "content": "\n\n"}, {"role": "user", "content": "/no_think ok"}]},
    {"messages": [USER, {"role": "assistant", "content": "text", "tool_calls": [call("run_code", "{\"code\": \"x\"}", "call00001")]}, {**RESULT, "content": ""}, USER], "tools": [CODE, NOTHING]},
]
MORE_VARIANT = {"add_generation_prompt": True, "enable_thinking": True, "reasoning_effort": "low", "eos_token": "<|end|>"}
