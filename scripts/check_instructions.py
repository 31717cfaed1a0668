#!/usr/bin/env python3
"""Holds all that is no kernel variant to the instructions that every x86-64 has:  check_instructions.py BUILD_FOLDER

Which variant runs is decided at start. What comes before that, and everything around the kernels, must run on a CPU that has none of
their instructions: one `vmovaps` that a flag or an attribute let into an object of another module ends the program there with SIGILL.
So the objects of src/ and apps/ outside the variants are disassembled and searched for anything beyond SSE2. `tzcnt` passes: an older
CPU runs it as `bsf`, and compilers use it only where both give the same.
"""
import re
import subprocess
import sys
from pathlib import Path

import source_tree

MODULE_OBJECT = re.compile(r"(src|apps)/.*\.o$")
NOT_OF_THE_PRODUCT = re.compile(r"pagoda_kernels_\w+\.dir/|_test\.dir/")
BEYOND_BASELINE = re.compile(
    r"v[a-z]\w*"  # AVX and all after it
    r"|andn|bextr|bls(i|r|msk)|bzhi|mulx|pdep|pext|rorx|s[ah]rx|shlx|lzcnt|movbe|ad[co]x"  # BMI and its company
    r"|addsubp[sd]|h(add|sub)p[sd]|lddqu|movddup|movs[hl]dup"  # SSE3
    r"|pabs[bwd]|palignr|ph(add|sub)\w+|pmaddubsw|pmulhrsw|pshufb|psign[bwd]"  # SSSE3
    r"|p?blend\w+|dpp[sd]|extractps|insertps|mpsadbw|packusdw|pcmpeqq|pextr[bdq]|pinsr[bdq]|phminposuw"  # SSE4.1
    r"|p(max|min)(sb|sd|ud|uw)|pmov[sz]x\w+|pmuldq|pmulld|ptest|rounds[sd]|roundp[sd]|movntdqa"
    r"|popcnt|crc32\w?|pcmp[ei]str[im]|pcmpgtq|aes\w+|sha(1|256)\w+|pclmul\w+")  # SSE4.2 and cryptography
MOST_PER_OBJECT = 3
LINE = re.compile(r"\s*[0-9a-f]+:\t(?:(?:rep|repz|lock|bnd|cs|ds|data16|notrack) )*([a-z]\w*)")
FUNCTION = re.compile(r"[0-9a-f]+ <(.+)>:$")


def problems_of(path, label):
    text = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", str(path)], check=True, capture_output=True, text=True).stdout
    found, function = [], "?"
    for line in text.splitlines():
        if match := FUNCTION.match(line):
            function = match.group(1)
        elif (match := LINE.match(line)) and BEYOND_BASELINE.fullmatch(match.group(1)):
            found.append(f"{label}: {match.group(1)} in {function}")
    return found[:MOST_PER_OBJECT]


def check(build):
    objects = sorted(path for path in build.rglob("*.o")
                     if MODULE_OBJECT.match(str(path.relative_to(build))) and not NOT_OF_THE_PRODUCT.search(str(path)))
    if not objects:
        return [f"{build}: no object of a module (is the tree built?)"]
    return [problem for path in objects for problem in problems_of(path, path.relative_to(build))]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(source_tree.report(check(Path(sys.argv[1])), "instructions"))
