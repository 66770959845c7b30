"""The measured sweeps that layouts are ranked on: what is equal in all rows of a job, and how a row becomes a command.

Only the columns of the configuration are read here. The measured figures are read by judge.py alone, after predictions have
been written down.
"""

from __future__ import annotations

import csv
import pathlib
from dataclasses import dataclass

LLAMA = {"13B": dict(layers=40, width=5120, heads=40, inner=13824), "30B": dict(layers=60, width=6656, heads=52, inner=17920),
         "65B": dict(layers=80, width=8192, heads=64, inner=22016)}


@dataclass(frozen=True)
class Job:
    file: str
    model: str
    gpus: int
    length: int
    batch: int  # sequences of a step


# DGX A100-80GB, LLaMA with a vocabulary of 128k, BF16, 1F1B, ZeRO-1 (arXiv 2311.05610).
JOBS = {
    "13b-32": Job("aleph-alpha-llama_13B_32_GPUs_sequence_parallelism.csv", "13B", 32, 2048, 2048),
    "65b-64": Job("aleph-alpha-llama_65B_64_GPUs_sequence_parallelism.csv", "65B", 64, 2048, 2048),
    "30b-8k-128": Job("aleph-alpha-llama_30B_8k_seq_length_128_GPUs_all_runs.csv", "30B", 128, 8192, 512),
    "13b-64": Job("aleph-alpha-llama_13B_64_GPUs_all_runs.csv", "13B", 64, 2048, 2048),
}
CONFIGURATION = ("trial", "gpus", "checkpointing", "kernel", "micro_batch", "tp", "pp", "sequence_parallel")
# torch's own attention in the script is FlashAttention 2; other kernels are not what it runs.
KERNELS = ("flash_attention2", "flash_attention2 + RMS kernel")


@dataclass(frozen=True)
class Layout:
    tensor: int
    pipeline: int
    micro_batch: int
    recompute: str
    sequence_parallel: bool
    fused_norm: bool

    @property
    def name(self) -> str:
        marks = [f"tp{self.tensor}", f"pp{self.pipeline}", f"mb{self.micro_batch}"]
        return "-".join(marks + ["full"] * (self.recompute == "full") + ["sp"] * self.sequence_parallel + ["rms"] * self.fused_norm)

    def data(self, job: Job) -> int:
        return job.gpus // (self.tensor * self.pipeline)

    def micro_batches(self, job: Job) -> int:
        return job.batch // (self.data(job) * self.micro_batch)

    def ranks(self, job: Job) -> list[int]:
        """One of each stage: tensor ranks are neighbours, then data ranks, then stages."""
        return [stage * self.tensor * self.data(job) for stage in range(self.pipeline)]

    def words(self, job: Job) -> list[str]:
        numbers = {**LLAMA[job.model], "length": job.length, "batch": self.micro_batch, "tensor": self.tensor, "pipeline": self.pipeline}
        words = [word for name, value in numbers.items() for word in (f"--{name}", str(value))]
        words += ["--recompute", self.recompute]
        return words + ["--sequence-parallel"] * self.sequence_parallel + ["--fused-norm"] * self.fused_norm


def rows(job: Job, folder: pathlib.Path) -> dict[str, Layout]:
    """Layout of each trial whose kernels the script runs."""
    found = {}
    with open(folder / job.file, newline="") as file:
        for row in csv.DictReader(file):
            row = {name: row[name] for name in CONFIGURATION}
            if row["kernel"] not in KERNELS:
                continue
            tensor = int(row["tp"])
            found[row["trial"]] = Layout(tensor, int(row["pp"]), int(row["micro_batch"]),
                                         "none" if row["checkpointing"] == "disabled" else "full",
                                         row["sequence_parallel"] == "1" and tensor > 1, "RMS" in row["kernel"])
    return found
