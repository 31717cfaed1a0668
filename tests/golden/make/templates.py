"""Makes ../templates/*.json with Python's Jinja2, set up as Hugging Face sets it up.

    pip install jinja2==3.1.6 && python templates.py

features.json: one small template a feature, with its text, or the fact that it fails.
chats.json: the templates of ../templates/*.jinja over conversations, with the prompt they give.
"""
import copy
import datetime
import json
import sys
from pathlib import Path

import jinja2
import jinja2.ext
import jinja2.sandbox

import template_chats
import template_features

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import packed_file

HERE = Path(__file__).resolve().parent.parent / "templates"
NOW = datetime.datetime(2025, 3, 9, 0, 0, 0)
TAG = "END_OF_PARTIAL_MESSAGE "


class Generation(jinja2.ext.Extension):
    """The tag {% generation %}, whose body is a scope of its own and is printed."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_print"), [], [], body).set_lineno(line)

    def _print(self, caller):
        return caller()


class Raised(jinja2.exceptions.TemplateError):
    pass


def raise_exception(message):
    raise Raised(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = to_json
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: NOW.strftime(form)
    return env


def outcome(source, variables):
    try:
        template = environment().from_string(source)
    except jinja2.TemplateSyntaxError as error:
        return {"refused_line": error.lineno}
    except SyntaxError:  # of the Python that Jinja makes, as for a break outside a loop
        return {"refused_line": 0}
    try:
        return {"text": template.render(**copy.deepcopy(variables))}
    except Raised as error:
        return {"raises": str(error)}
    except Exception as error:  # whatever Python raises
        return {"fails": str(error)}


def feature_cases():
    groups = {key: value for key, value in vars(template_features).items()
              if key.isupper() and key != "DATA"}
    cases = []
    for group, templates in groups.items():
        for name, source in templates.items():
            got = outcome(source, template_features.DATA)
            expected = {"FAILING": "fails", "REFUSED": "refused_line"}.get(group, "text")
            assert expected in got, (group, name, got)
            if group == "FAILING":
                got = {"fails": True}
            cases.append({"name": f"{group.lower()}/{name}", "template": source} | got)
    dates = "{{ strftime_now('%Y-%m-%d %d %B %Y %b %A %a %H:%M:%S %j %y %I %p %U %e|%-d %%') }}"
    cases.append({"name": "globals/strftime_now", "template": dates} | outcome(dates, {}))
    raises = "a{{ raise_exception('No \"such\" thing: ' ~ n) }}b"
    cases.append({"name": "globals/raise_exception", "template": raises} | outcome(raises, template_features.DATA))
    return cases


def joined(messages):
    """Text parts as one text, for templates that take only text."""
    return [m | {"content": "\n".join(p["text"] for p in m["content"])} if isinstance(m.get("content"), list) else m
            for m in messages]


def render_chat(source, case, takes_parts):
    messages = copy.deepcopy(case.get("reference", case["messages"]))
    if case.get("joined") and not takes_parts:
        messages = joined(messages)
    variables = {
        "messages": messages, "tools": case.get("tools"), "documents": case.get("documents"),
        "add_generation_prompt": case.get("add_generation_prompt", not case.get("continue")),
        "bos_token": "<s>", "eos_token": "</s>", **case.get("kwargs", {}),
    }
    if not case.get("continue"):
        return outcome(source, variables)
    last = messages[-1]["content"]
    final = last if isinstance(last, str) else last[-1]["text"]
    if isinstance(last, str):
        messages[-1]["content"] = final + TAG
    else:
        last[-1]["text"] = final + TAG
    text = outcome(source, variables)["text"]
    at = text.rindex(TAG.strip())
    kept = text[:at]
    return {"text": kept if text[at:at + len(TAG)] == TAG else kept.rstrip()}


def chat_cases():
    out = []
    for family, cases in template_chats.FAMILIES.items():
        source = (HERE / f"{family}.jinja").read_text()
        for case in cases:
            got = render_chat(source, case, family in ("gemma3", "glm", "parts-only"))
            assert "text" in got or "raise" in case["name"] or takes_no_null(case), (family, case["name"], got)
            if "fails" in got:
                continue
            kept = {key: value for key, value in case.items() if key not in ("reference", "joined")}
            out.append({"family": family} | kept | got)
    return out


def takes_no_null(case):
    return "None" in case["name"] or "missing" in case["name"]


def write(name, cases):
    path = HERE / name
    body = ",\n".join(json.dumps(case, ensure_ascii=True) for case in cases)
    head = ""
    if name == "features.json":
        head = '"variables": ' + json.dumps(template_features.DATA, ensure_ascii=True) + ",\n"
    packed_file.write(("{" + head + '"cases": [\n' + body + "\n]}\n").encode(), path)
    print(name, len(cases))


if __name__ == "__main__":
    write("features.json", feature_cases())
    write("chats.json", chat_cases())
