"""ultralytics' own trainer on a small synthetic data set."""

from __future__ import annotations

import argparse
import os
import pathlib
import tempfile

import numpy as np

os.environ.setdefault("YOLO_OFFLINE", "true")


def dataset(folder: pathlib.Path) -> pathlib.Path:
    from PIL import Image
    random = np.random.default_rng(0)
    for part, count in (("train", 24), ("val", 4)):
        (folder / "images" / part).mkdir(parents=True)
        (folder / "labels" / part).mkdir(parents=True)
        for i in range(count):
            Image.fromarray(random.integers(0, 255, (160, 160, 3), dtype=np.uint8)).save(
                folder / f"images/{part}/{i}.png"
            )
            boxes = random.random((4, 4)) * 0.3 + 0.2
            (folder / f"labels/{part}/{i}.txt").write_text(
                "\n".join(f"{random.integers(0, 4)} " + " ".join(f"{x:.4f}" for x in box) for box in boxes))
    path = folder / "data.yaml"
    path.write_text(f"path: {folder}\ntrain: images/train\nval: images/val\nnames: [a, b, c, d]\n")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="yolov8n.yaml")
    parser.add_argument("--no-amp", dest="amp", action="store_false")
    args = parser.parse_args()
    from ultralytics import YOLO
    with tempfile.TemporaryDirectory() as folder:
        YOLO(args.model).train(
            data=str(dataset(pathlib.Path(folder))),
            epochs=2,
            imgsz=160,
            batch=4,
            device=0,
            workers=0,
            project=folder,
            plots=False,
            val=False,
            amp=args.amp,
            nbs=4,
            save=False,
            verbose=False,
        )
    print("done", flush=True)


if __name__ == "__main__":
    main()
