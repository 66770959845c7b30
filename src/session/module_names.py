# Names of the modules whose calls are under way: reads, changes nothing. `address` is a function of Maya's.
import ctypes
import re
import sys

# What DDP, FSDP, torch.compile and checkpointing put around a module is not part of the model.
wrappers = re.compile(r"(^module|_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)(\.|$)")
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
        shown = "".join(c if c.isprintable() else "?" for c in wrappers.sub("", name).rstrip("."))[:400]
        lines.append("m %x %s\n" % (id(module), shown or type(module).__name__))
    tell("".join(lines).encode("utf-8", "replace"), id(root))
