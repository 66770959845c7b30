# Names of the modules whose calls are under way: reads, changes nothing. `address` is a function of Maya's.
import ctypes
import sys

tell = ctypes.PYFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint64)(address)
frame = sys._getframe()
root = None
while frame is not None:
    if frame.f_code.co_name in ("_call_impl", "_wrapped_call_impl") and frame.f_code.co_filename.endswith("torch/nn/modules/module.py"):
        root = frame.f_locals.get("self", root)
    frame = frame.f_back
if root is not None:
    lines = []
    for name, module in root.named_modules():
        shown = "".join(c if c.isprintable() else "?" for c in name)[:400]
        lines.append("m %x %s\n" % (id(module), shown or type(root).__name__))
    tell("".join(lines).encode("utf-8", "replace"), id(root))
