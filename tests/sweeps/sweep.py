"""One case after the other, whatever becomes of the one before."""

import sys

import torch


def sweep(what, cases, train, own_fault=lambda error: False, at_least=1):
    """Trains every case, (name, value); those whose error is their `own_fault` are left out. Ends the program."""
    ran, refused, failed = 0, [], 0
    for name, value in cases:
        try:
            train(value)
            torch.cuda.synchronize()
            ran += 1
        except Exception as error:  # the next one is worth trying
            if own_fault(error):
                refused.append(name)
            else:
                failed += 1
                print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", flush=True)
        torch.cuda.empty_cache()
    print(
        f"{ran} {what} trained, {failed} failed"
        + (f"; {len(refused)} left out: {' '.join(refused)}" if refused else "")
    )
    sys.exit(failed > 0 or ran < at_least)
