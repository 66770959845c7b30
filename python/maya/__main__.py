"""`maya` and `python -m maya`: replaces this process by the compiled program in the package."""

import os
import sys

from maya import MayaError, program


def main() -> int:
    try:
        path = program()
    except MayaError as error:
        print(f"maya: {error}", file=sys.stderr)
        return 1
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
