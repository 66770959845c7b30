# Tells Maya when an optimizer has updated its parameters: some do so with kernels that nobody can tell from others
# (compiled, tensor by tensor, products of matrices). Executed when the program makes its first optimizer
# (session/api_usage.cpp). It uses the hook that torch has for this. `address` is a function of Maya's.
import ctypes

import torch

try:
    from torch.optim.optimizer import register_optimizer_step_post_hook
    is_compiling = torch.compiler.is_compiling
except (ImportError, AttributeError):  # torch before 2.1
    register_optimizer_step_post_hook = None

if register_optimizer_step_post_hook is not None:
    tell = ctypes.PYFUNCTYPE(None, ctypes.c_char_p)(address)
    sources = {}

    def updated(optimizer, arguments, keywords):
        # A step that is being compiled must not depend on this; nothing is said then.
        if is_compiling():
            return
        name = sources.get(id(optimizer))
        if name is None:
            name = "optimizer %s %d" % (type(optimizer).__name__, len(sources))
            name = sources[id(optimizer)] = name.encode("ascii", "replace")
        tell(name)

    register_optimizer_step_post_hook(updated)
