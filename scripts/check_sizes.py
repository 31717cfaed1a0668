#!/usr/bin/env python3
"""Holds the tail of the tree:  check_sizes.py [ROOT]

No file over 800 lines, no function over 80, none with more than five parameters; tests, kernels and scripts included.
"""
import ast
import sys
from pathlib import Path

import cpp_functions
import source_tree

MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 80
MAX_PARAMETERS = 5

# Files that a script of ours writes; each with the reason why it may be long.
EXEMPT = {}


def cpp_problems(path, text):
    for function in cpp_functions.functions(text):
        where = f"{path}:{function.first_line}: {function.name}"
        if function.has_body and function.num_lines > MAX_FUNCTION_LINES:
            yield f"{where} has {function.num_lines} lines, the limit is {MAX_FUNCTION_LINES}"
        if function.num_parameters > MAX_PARAMETERS:
            yield f"{where} has {function.num_parameters} parameters, the limit is {MAX_PARAMETERS}"


def python_problems(path, text):
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        num_lines = node.end_lineno - node.lineno + 1
        arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
        num_parameters = len([a for a in arguments if a.arg not in ("self", "cls")])
        where = f"{path}:{node.lineno}: {node.name}"
        if num_lines > MAX_FUNCTION_LINES:
            yield f"{where} has {num_lines} lines, the limit is {MAX_FUNCTION_LINES}"
        if num_parameters > MAX_PARAMETERS:
            yield f"{where} has {num_parameters} parameters, the limit is {MAX_PARAMETERS}"


def check(root, exempt):
    problems = [f"scripts/check_sizes.py: exempts {path}, which does not exist"
                for path in exempt if not (root / path).is_file()]
    for path in source_tree.files(root, source_tree.CPP_SUFFIXES + (".py", ".sh", ".cmake", "CMakeLists.txt")):
        text = (root / path).read_text(encoding="utf-8", errors="replace")
        num_lines = text.count("\n")
        if num_lines > MAX_FILE_LINES and str(path) not in exempt:
            problems.append(f"{path}: {num_lines} lines, the limit is {MAX_FILE_LINES}")
        if path.suffix in source_tree.CPP_SUFFIXES:
            problems += cpp_problems(path, text)
        elif path.suffix == ".py":
            problems += python_problems(path, text)
    return problems


if __name__ == "__main__":
    start = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    sys.exit(source_tree.report(check(start, EXEMPT), "sizes"))
