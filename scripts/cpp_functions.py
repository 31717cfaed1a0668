"""Finds the functions of a C++ source: where each begins and ends, and how many parameters it takes.

This is no parser. It walks over text without comments, literals and directives, keeps a stack of braces, and decides for each
opening brace at namespace or class scope from the words before it whether it opens a namespace, a type, an initialiser
or a function. What is inside a function, lambdas included, belongs to that function.
"""
import re
from dataclasses import dataclass

import source_tree

SCOPE = re.compile(r'^(?:inline\s+)?namespace\b|^extern\s*""\s*$')
TYPE = re.compile(r"^(?:template\s*<.*>\s*|typedef\s+)?(?:class|struct|union)\b")
ENUM = re.compile(r"^(?:template\s*<.*>\s*)?enum\b")
ACCESS = re.compile(r"^(?:(?:public|protected|private)\s*:\s*)+")
NOT_A_NAME = {"alignas", "__attribute__", "explicit", "decltype", "noexcept", "requires", "throw", "static_assert", "if", "sizeof"}
NO_FUNCTION = re.compile(r"^(?:using|typedef|static_assert|friend\s+class|extern\s+template)\b")


@dataclass
class Function:
    name: str
    first_line: int
    last_line: int
    num_parameters: int
    has_body: bool

    @property
    def num_lines(self):
        return self.last_line - self.first_line + 1


def matching(text, start):
    """The index of the bracket that closes the one at start, or len(text)."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    depth = 0
    for at in range(start, len(text)):
        if text[at] in pairs:
            depth += 1
        elif text[at] in pairs.values():
            depth -= 1
            if depth == 0:
                return at
    return len(text)


def parameter_group(head):
    """(name, parameters) of the function that a head declares, or None where it declares none."""
    at = 0
    while (at := head.find("(", at)) >= 0:
        end = matching(head, at)
        before = re.search(r"(operator\s*\S{1,3}|[\w~]+)\s*(?:<[^()]*>)?\s*$", head[:at])
        content = head[at + 1:end]
        name = before.group(1) if before else ""
        if name == "operator" and not content.strip():  # operator()(...)
            name, at = "operator()", end + 1
            at = head.find("(", at)
            if at < 0:
                return None
            return name, head[at + 1:matching(head, at)]
        if content.lstrip().startswith(("*", "&")) and "(" in head[end:]:  # pointer to function
            inner = head.find("(", end)
            return content.strip("*& "), head[inner + 1:matching(head, inner)]
        if name and name not in NOT_A_NAME:
            return name, content
        at = end + 1
    return None


def count_parameters(content):
    content = content.strip()
    if not content or content == "void":
        return 0
    depth, commas, previous = 0, 0, ""
    for char in content:
        if char in "([{<":
            depth += 1
        elif char in ")]}" or (char == ">" and previous != "-"):
            depth -= 1
        elif char == "," and depth == 0:
            commas += 1
        previous = char
    return commas + 1


def opens_initialiser(head):
    """Whether a brace after this head begins a value and not a body."""
    head = head.rstrip()
    if head.endswith(("=", ",", "(", "return")) or "(" not in head:
        return True
    group = head.rfind(")")
    tail = head[group + 1:]
    # In a constructor's list "a_{x}, b_{y} {", a brace right after a name is a value.
    in_list = re.search(r"\)\s*(?:noexcept\s*)?:(?!:)", head)
    if in_list and re.search(r"[\w>]$", tail if tail.strip() else ""):
        return True
    return bool(re.search(r"=\s*[\w:<>, ]+$", tail))


def is_variable(head):
    """Whether a head without body initialises something: a value begins before any parenthesis does."""
    before = re.sub(r"operator\s*[^\s\w(]+", "", head).split("(")[0]
    return "=" in before or "{" in before


def clean_head(raw):
    head = re.sub(r"\[\[[^\]]*\]\]", lambda m: " " * len(m.group(0)), raw)
    return ACCESS.sub("", head.strip())


class Walker:
    def __init__(self, text):
        self.text = source_tree.strip_directives(source_tree.strip_literals(text))
        self.functions = []

    def line(self, at):
        return self.text.count("\n", 0, at) + 1

    def add(self, raw_start, raw, end, has_body):
        head = clean_head(raw)
        group = None if NO_FUNCTION.match(head) else parameter_group(head)
        if group is None or (not has_body and is_variable(head)):
            return
        lead = len(raw) - len(ACCESS.sub("", raw.lstrip()))
        first = self.line(raw_start + lead)
        self.functions.append(Function(group[0], first, self.line(end), count_parameters(group[1]), has_body))

    def open_brace(self, start, at):
        """Deals with the brace at `at` whose head began at `start`; returns where the walk goes on, and whether a new head begins."""
        raw = self.text[start:at]
        head = clean_head(raw)
        if head == "" or SCOPE.match(head):
            return at + 1, True
        if ENUM.match(head):
            return matching(self.text, at) + 1, False
        if TYPE.match(head) and not re.search(r"\)\s*(?:const|noexcept|override|\s)*$", head):
            return at + 1, True
        end = matching(self.text, at)
        if opens_initialiser(head):
            return end + 1, False
        self.add(start, raw, end, has_body=True)
        return end + 1, True

    def run(self):
        start, at = 0, 0
        while at < len(self.text):
            char = self.text[at]
            if char in "([":
                at = matching(self.text, at) + 1
            elif char == ";":
                self.add(start, self.text[start:at], at, has_body=False)
                start = at = at + 1
            elif char == "}":
                start = at = at + 1
            elif char == "{":
                at, is_new = self.open_brace(start, at)
                start = at if is_new else start
            else:
                at += 1
        return self.functions


def functions(text):
    return Walker(text).run()
