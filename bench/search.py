"""What the search itself costs: its CPU time against that of the trials, over 10,000 layouts answered by a formula.

Trials are processes that sleep, so the machine's own load hardly counts.
"""

import os
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "search")]
TRIAL_S = 2.0


def main() -> None:
    os.environ |= {"MAYA_PROGRAM": str(ROOT / "tests" / "search" / "fake_maya.py"), "FAKE_SECONDS": str(TRIAL_S)}
    from maya.search import session
    from test_guided import LARGE, truth

    with tempfile.TemporaryDirectory() as folder:
        space = pathlib.Path(folder) / "space.toml"
        space.write_text(LARGE)
        began, own = time.monotonic(), time.process_time()
        result = session.perform(space, session.Settings(out=f"{folder}/out", jobs=8))
        own, wall = time.process_time() - own, time.monotonic() - began
    trials = [r for r in result.records if r.seconds]
    costs = [cost for cost in truth(LARGE).values() if cost is not None]
    spent = sum(r.seconds for r in trials)
    best = result.best.prediction["cost"]["usd_per_step"]
    print(f"configurations                                       {len(result.records):6d}")
    print(f"trials that ran                                      {len(trials):6d}  in {wall:.0f} s")
    print(f"best found over best there is                        {best / min(costs):6.3f}")
    print(f"own CPU time, storing all configurations             {own:6.1f} s")
    print(
        f"own CPU time over trial time                         {100 * own / spent:6.1f} %  of trials of {TRIAL_S:g} s;"
        f" {100 * own / (7 * len(trials)):.1f} % of trials of 7 s"
    )


if __name__ == "__main__":
    main()
