"""The spec folder as data: libraries, their functions, and how each function is treated."""
import csv
import dataclasses
import pathlib
import re

COLUMNS = ["function", "signature", "signature_12", "sonames", "treatment"]


@dataclasses.dataclass
class Library:
    library: str
    soname: str
    cuda_major: str  # 12, 13 or any
    version_node: str  # empty: the library is unversioned
    kind: str  # full, or thin:<soname whose functions it offers>
    status_type: str
    success: str
    not_supported: str
    definitions: str
    aliases: str

    @property
    def thin_over(self):
        return self.kind[5:] if self.kind.startswith("thin:") else None


@dataclasses.dataclass
class Function:
    function: str
    signature: str
    signature_12: str  # only where CUDA 12 differs
    sonames: str  # ;-separated
    treatment: str  # manual, success, unsupported, value:<n>, or data:<bytes> for a zeroed variable

    def signature_for(self, library):
        return self.signature_12 if library.cuda_major == "12" and self.signature_12 else self.signature

    @property
    def return_type(self):
        return self.signature.split("(", 1)[0].strip()


def read_libraries(spec):
    with open(pathlib.Path(spec) / "libraries.csv", newline="") as file:
        return [Library(**row) for row in csv.DictReader(file)]


def read_functions(spec, library):
    path = pathlib.Path(spec) / f"{library}.csv"
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return [Function(**row) for row in csv.DictReader(file)]


def write_functions(spec, library, functions):
    with open(pathlib.Path(spec) / f"{library}.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for function in sorted(functions, key=lambda f: f.function):
            writer.writerow(dataclasses.asdict(function))


def bad_treatment(text):
    return text not in ("manual", "success", "unsupported") and not re.fullmatch(r"value:-?\d+|data:\d+", text)
