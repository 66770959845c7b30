# Which lines of the program the code that torch.compile generated stands for: reads, changes nothing. `address` is a
# function of Maya's, `paths` are the generated files that have run.
import ctypes
import re
import sys

tell = ctypes.PYFUNCTYPE(None, ctypes.c_char_p)(address)
known = getattr(getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None), "linemaps", {})


def plain(text):
    return "".join(c if c.isprintable() and c != ":" else "?" for c in text)[:400]


for path in paths:
    lines = known.get(path)
    if not lines or len(lines) != 2:
        continue
    with open(path, errors="replace") as file:
        backward = "_backward" in file.readline()  # AOT ID: ['0_backward']
    out = []
    for line, trace in zip(*lines):
        frames = re.findall(r'File "(.+)", line (\d+), in (.+)\n', trace or "")
        shown = ["%s:%s:%s" % (n, plain(function), plain(name)) for name, n, function in reversed(frames)]
        out.append("\t".join(["g %d %d %s" % (line, backward, path), *shown]) + "\n")
    tell("".join(out).encode("utf-8", "replace"))
