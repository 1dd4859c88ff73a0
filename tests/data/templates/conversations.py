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
