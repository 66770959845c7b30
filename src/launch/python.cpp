#include "launch/python.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "launch/environment.h"
#include "launch/supervise.h"

namespace maya::launch {

namespace fs = std::filesystem;

namespace {

// find_spec of a top-level package only looks for its files and does not run its code.
constexpr const char* questions = R"(
import importlib.metadata as metadata, importlib.util as util, os, sys, sysconfig
print("version", sys.version.split()[0])
def there(name):
    try:
        return util.find_spec(name)
    except (ImportError, ValueError):
        return None
spec = there("torch")
if spec and spec.origin:
    print("torch", os.path.dirname(spec.origin))
    for name in ("typing_extensions", "sympy", "networkx", "jinja2", "fsspec", "filelock", "numpy"):
        if not there(name):
            print("missing", name)
include = sysconfig.get_paths().get("include", "")
if os.path.exists(os.path.join(include, "Python.h")):
    print("include", include)
print("site", sysconfig.get_paths().get("platlib", ""))
training = """accelerate apex axolotl bitsandbytes causal-conv1d cupy-cuda12x cupy-cuda13x deepspeed diffusers fairscale
    fbgemm-gpu flash-attn flashinfer-python galore-torch jax jaxlib jax-cuda12-plugin jax-cuda13-plugin lightning
    liger-kernel litgpt llm-foundry mamba-ssm megatron-core megatron-energon mosaicml nemo-toolkit numba-cuda peft
    pytorch-lightning tensorflow timm torchao torchaudio torchrec torchtitan torchtune torchvision transformer-engine
    transformers trl ultralytics unsloth vllm xformers""".split()
for package in metadata.distributions():
    name = package.metadata["Name"] or ""
    if name.lower() in ("triton", "pytorch-triton"):
        print("triton", package.version)
    elif name.lower().startswith(("nvidia-", "nvidia_")):
        print("nvidia", name, package.version)
    elif name.lower().replace("_", "-") in training:
        print("package", name, package.version)
)";

std::string assigned(const std::string& text, const std::string& name) {
  std::regex line("(^|\\n)" + name + R"(\b[^=\n]*= *'([^']*)')");
  std::smatch match;
  return std::regex_search(text, match, line) ? match[2].str() : "";
}

}  // namespace

Result<Python> inspect_python(const std::string& path) {
  Environment environment = current_environment();
  environment.erase("LD_PRELOAD");
  auto output = capture({path, {path, "-c", questions}, as_block(environment)});
  if (!output) return output.error();
  Python python;
  python.path = path;
  std::istringstream lines(*output);
  for (std::string line; std::getline(lines, line);) {
    auto space = line.find(' ');
    std::string key = line.substr(0, space),
                value = space == std::string::npos ? "" : line.substr(space + 1);
    if (key == "version") python.version = value;
    if (key == "torch") python.torch = Torch{value, "", "", ""};
    if (key == "triton") python.triton = value;
    if (key == "include") python.include = value;
    if (key == "nvidia") python.nvidia_packages.push_back(value);
    if (key == "package") python.packages.push_back(value);
    if (key == "site") python.site = value;
    if (key == "missing") python.missing.push_back(value);
  }
  if (python.version.empty()) return Error{fmt::format("{} is not a Python interpreter", path)};
  if (python.torch) {
    std::ifstream file(python.torch->location + "/version.py");
    std::stringstream text;
    text << file.rdbuf();
    python.torch->version = assigned(text.str(), "__version__");
    python.torch->cuda = assigned(text.str(), "cuda");
    python.torch->rocm = assigned(text.str(), "hip");
  }
  return python;
}

std::optional<std::string> python_of(const Executable& executable) {
  for (const std::string& path : {executable.path, executable.interpreter}) {
    if (fs::path(path).filename().string().rfind("python", 0) == 0) return path;
  }
  return std::nullopt;
}

}  // namespace maya::launch
