"""Conversations for the chat templates of ../templates/*.jinja. See templates.py.

A case has the messages as a client of the OpenAI API sends them. `reference` replaces parts of them
for the reference renderer, where that must be given what a template wants (a mapping for the
arguments of a call, text for parts).
"""

SYSTEM = {"role": "system", "content": "You answer in verse."}
USER = {"role": "user", "content": "What is 2 + 2?"}
PADDED_USER = {"role": "user", "content": "  Spaces and a newline \n"}
ANSWER = {"role": "assistant", "content": "It is 4."}
THOUGHT = {"role": "assistant", "content": "<think>\nTwo and two.\n</think>\n\nIt is 4."}
THANKS = {"role": "user", "content": "Thanks!  And 3 + 3? \u00bfS\u00ed? \u4f60\u597d"}

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "The city's name"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius",
                         "description": "The unit"},
                "days": {"type": "array", "items": {"type": "integer"}, "description": "Which days"},
                "options": {"type": "object", "description": "More",
                            "properties": {"wind": {"type": "boolean"}, "lang": {"type": ["string", "null"]}}},
            },
            "required": ["city"],
        },
    },
}
NOW = {
    "type": "function",
    "function": {"name": "now", "description": "The time.",
                 "parameters": {"type": "object", "properties": {}, "required": []}},
}
ARGUMENTS = {"city": "Z\u00fcrich \"HB\"", "days": [1, 2], "options": {"wind": True, "lang": None}, "limit": 1.5}


def call(arguments, identifier="abc123XYZ", name="get_weather"):
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*of, **more):
    return {"role": "assistant", "tool_calls": list(of), **more}


def result(content, identifier="abc123XYZ"):
    return {"role": "tool", "tool_call_id": identifier, "name": "get_weather", "content": content}


def as_text(arguments):
    import json
    return json.dumps(arguments, ensure_ascii=False)


def dialogue(content, arguments):
    turn = calls(call(arguments))
    if content != "missing":
        turn["content"] = content
    return [USER, turn, result('{"temp": 21}'), {"role": "assistant", "content": "21 degrees."}, THANKS]


PLAIN = [
    {"name": "one", "messages": [USER]},
    {"name": "no generation prompt", "messages": [USER], "add_generation_prompt": False},
    {"name": "several turns", "messages": [USER, ANSWER, THANKS]},
    {"name": "padded", "messages": [PADDED_USER, ANSWER, PADDED_USER]},
    {"name": "thought", "messages": [USER, THOUGHT, THANKS]},
    {"name": "ends with assistant", "messages": [USER, ANSWER], "add_generation_prompt": False},
    {"name": "continue", "messages": [USER, {"role": "assistant", "content": "It is"}], "continue": True},
    {"name": "continue, blank at the end", "messages": [USER, {"role": "assistant", "content": "It is "}],
     "continue": True},
    {"name": "continue, newlines at the end", "messages": [USER, {"role": "assistant", "content": "One\n\n"}],
     "continue": True},
    {"name": "parts", "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"},
                                                              {"type": "text", "text": "there"}]}],
     "joined": True},
]
WITH_SYSTEM = [
    {"name": "system", "messages": [SYSTEM, USER]},
    {"name": "system, several turns", "messages": [SYSTEM, USER, ANSWER, THANKS, ANSWER, USER]},
]


def tool_cases(wants, contents=("",)):
    """`wants`: "mapping" or "text", what the reference is given for arguments; "either": both."""
    cases = [
        {"name": "tools offered", "messages": [USER], "tools": [WEATHER, NOW]},
        {"name": "tools offered, system", "messages": [SYSTEM, USER], "tools": [WEATHER]},
    ]
    for content in contents:
        for arguments in (ARGUMENTS, {}):
            reference = arguments if wants == "mapping" else as_text(arguments)
            for client in ("mapping", "text"):
                given = arguments if client == "mapping" else as_text(arguments)
                case = {"name": f"tool dialogue, content {content!r}, arguments as {client}",
                        "messages": dialogue(content, given), "tools": [WEATHER]}
                case["reference"] = dialogue("" if content == "missing" else content,
                                             given if wants == "either" else reference)
                if wants == "either":
                    case["reference"] = dialogue(content, given)
                cases.append(case)
    return cases


TWO_CALLS = {
    "name": "two calls, two results",
    "messages": [USER, calls(call(as_text({"city": "A"})), call(as_text({"city": "B"}), "abc123XYW"), content=""),
                 result("1"), result("2", "abc123XYW")],
    "reference": [USER, calls(call({"city": "A"}), call({"city": "B"}, "abc123XYW"), content=""),
                  result("1"), result("2", "abc123XYW")],
    "tools": [WEATHER, NOW],
}
REASONING = {
    "name": "reasoning field",
    "messages": [USER, {"role": "assistant", "content": "It is 4.", "reasoning_content": "\nEasy.\n"}],
    "add_generation_prompt": False,
}
NO_THINKING = {"name": "thinking off", "messages": [USER], "kwargs": {"enable_thinking": False}}
THINKING = {"name": "thinking on", "messages": [USER, THOUGHT, THANKS], "kwargs": {"enable_thinking": True}}
WRONG_ORDER = {"name": "wrong order raises", "messages": [USER, USER]}

FAMILIES = {
    "smollm2": PLAIN + WITH_SYSTEM,
    "llama3-tools": PLAIN + WITH_SYSTEM + tool_cases("mapping", ("", None, "missing")) + [
        {"name": "two calls raise", "messages": TWO_CALLS["messages"], "reference": TWO_CALLS["reference"]},
        {"name": "builtin tools", "messages": dialogue("", as_text({"query": "x"})),
         "reference": dialogue("", {"query": "x"}), "kwargs": {"builtin_tools": ["get_weather"]}},
        {"name": "tools in the system message", "messages": [USER], "tools": [NOW],
         "kwargs": {"tools_in_user_message": False, "date_string": "01 Jan 2025"}},
    ],
    "qwen25": PLAIN + WITH_SYSTEM + tool_cases("mapping", ("", None, "missing")) + [TWO_CALLS],
    "qwen3": PLAIN + WITH_SYSTEM + tool_cases("either", ("", None, "missing"))
             + [TWO_CALLS | {"reference": TWO_CALLS["messages"]}, REASONING, NO_THINKING, THINKING],
    # The call is printed as part of its function, so a text stays a text: encoded twice.
    "mistral-tools": PLAIN + WITH_SYSTEM + tool_cases("mapping", ("", None, "missing")) + [TWO_CALLS, WRONG_ORDER],
    "deepseek-r1": PLAIN + WITH_SYSTEM + tool_cases("text", ("", None, "missing")) + [
        TWO_CALLS | {"reference": TWO_CALLS["messages"]}],
    "gemma3": PLAIN + WITH_SYSTEM + [WRONG_ORDER],
    "phi4": PLAIN + WITH_SYSTEM,
    "phi3-mini": PLAIN + WITH_SYSTEM,
    "harmony": PLAIN + WITH_SYSTEM + tool_cases("mapping", ("", None, "missing")) + [
        {"name": "developer", "messages": [{"role": "developer", "content": "Be brief."}, USER],
         "kwargs": {"reasoning_effort": "high", "model_identity": "You are Toy."}},
        {"name": "thinking field", "messages": [USER, {"role": "assistant", "content": "4", "thinking": "hm"}],
         "add_generation_prompt": False},
        {"name": "result without call raises", "messages": [USER, result("x")]},
    ],
    "glm": PLAIN + WITH_SYSTEM + tool_cases("mapping", ("", None, "missing")) + [REASONING, NO_THINKING, THINKING],
    "hermes": PLAIN + WITH_SYSTEM + tool_cases("either", ("", None, "missing"))
              + [TWO_CALLS | {"reference": TWO_CALLS["messages"]}],
    "command-r": PLAIN + WITH_SYSTEM + tool_cases("mapping", ("", None, "missing")) + [
        {"name": "documents", "messages": [USER],
         "documents": [{"title": "T", "text": "Some text."}, {"title": "U", "n": 5}]},
    ],
    "parts-only": [],
    "xml-arguments": PLAIN + WITH_SYSTEM + tool_cases("mapping", ("", None, "missing")),
}
for case in PLAIN + WITH_SYSTEM:
    parts = [m if not isinstance(m["content"], str)
             else m | {"content": [{"type": "text", "text": m["content"]}]} for m in case["messages"]]
    FAMILIES["parts-only"].append(case | {"reference": parts})
