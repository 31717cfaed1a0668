"""Which files the checks look at, and C++ text without its comments and literals."""
import os
import re
import subprocess
from pathlib import Path

SKIPPED_FOLDERS = {".git", ".cache", "__pycache__"}
CPP_SUFFIXES = (".h", ".cpp", ".cu", ".cuh")


def files(root, suffixes):
    """Paths below root, relative, sorted: those that git tracks or would track, or all where there is no repository."""
    root = Path(root)
    if (root / ".git").exists():
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"],
                                check=True, capture_output=True).stdout.decode()
        names = {name for name in listed.split("\0") if name and (root / name).is_file()}
    else:
        names = set()
        for folder, folders, found in os.walk(root):
            folders[:] = [f for f in folders if f not in SKIPPED_FOLDERS and not f.startswith("build")]
            names |= {str(Path(folder, name).relative_to(root)) for name in found}
    return [Path(name) for name in sorted(names) if name.endswith(tuple(suffixes))]


LEXEMES = re.compile(
    r"""//[^\n]*(?:\\\n[^\n]*)*            # line comment, with continuation lines
      | /\*.*?\*/                          # block comment
      | (?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"   # raw string
      | "(?:\\.|[^"\\\n])*"                # string
      | (?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'  # character; not the separator of digits
    """, re.S | re.X)


def blank(match):
    """The replacement of a lexeme: keeps the lines, and a literal stays recognisable as an operand."""
    text = match.group(0)
    newlines = "\n" * text.count("\n")
    return newlines if text.startswith("/") else '""' + newlines


def strip_literals(text):
    """C++ source with comments removed and literals emptied; line numbers stay as they are."""
    return LEXEMES.sub(blank, text)


DIRECTIVES = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)


def strip_directives(text):
    return DIRECTIVES.sub(lambda m: "\n" * m.group(0).count("\n"), text)


INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"(?P<own>[^"\n]+)"|<(?P<system>[^>\n]+)>)', re.M)
COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def includes(text):
    """(line, name, is_quoted) of every include that is not commented out."""
    text = COMMENTS.sub(lambda m: "\n" * m.group(0).count("\n"), text)
    found = []
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        found.append((line, match.group("own") or match.group("system"), match.group("own") is not None))
    return found


def report(problems, subject):
    """Prints the problems and one closing line; returns the exit status."""
    for problem in problems:
        print(problem)
    print(f"{subject}: {len(problems)} problem{'' if len(problems) == 1 else 's'}")
    return 1 if problems else 0
