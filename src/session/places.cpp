#include "session/places.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "session/membership.h"
#include "session/python_code.h"
#include "session/python_frames.h"

namespace maya::session {

bool places_wanted = [] {
  const char* asked = std::getenv("MAYA_STACKS");
  return asked != nullptr && *asked == '1';
}();

extern const char module_names[];     // generated from module_names.py, ends in 0
extern const char generated_lines[];  // likewise

namespace {

constexpr std::uint32_t no_stack = 0;
constexpr int most_frames = 96;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 32);
}

template <class F>
F* of_torch(const char* name) {
  void* library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  return library ? reinterpret_cast<F*>(dlsym(library, name)) : nullptr;
}

// Which forward op a node of the autograd graph belongs to: nodes carry the thread that made them
// and a number that the thread counts up.
class Autograd {
 public:
  // Of the op that this thread is at work on; 0: not known.
  std::uint64_t forward_key() {
    find();
    if (peek_ == nullptr || thread_ == nullptr) return 0;
    const std::uint64_t next = peek_();
    return next == 0 ? 0 : key(thread_(), next - 1);
  }

  // Of the node that the engine evaluates in this thread; false: none.
  bool node(std::uint64_t& thread, std::uint64_t& number) {
    find();
    if (current_ == nullptr) return false;
    // A smart pointer is returned through memory. Up to torch 2.8 it is std::shared_ptr, of two
    // words; in 2.15 it is c10::intrusive_ptr, of one.
    constexpr std::uint64_t untouched = 0x5a5a5a5a5a5a5a5aULL;
    std::uint64_t result[2] = {0, untouched};
    current_(result);
    if (result[0] == 0) return false;
    const bool shared = result[1] != untouched;
    // torch::autograd::Node: virtual functions, its counts (of enable_shared_from_this, or its
    // own), then sequence_nr_, topological_nr_, has_parent_, thread_id_.
    const auto* words = reinterpret_cast<const std::uint64_t*>(result[0]);
    number = words[shared ? 3 : 2], thread = words[shared ? 6 : 5];
    // The engine holds the node too, so that giving back our reference never ends it.
    if (shared)
      reinterpret_cast<std::atomic<std::int32_t>*>(result[1] + 8)->fetch_sub(1);
    else
      reinterpret_cast<std::atomic<std::uint64_t>*>(result[0] + 8)->fetch_sub(1);
    return true;
  }

  static std::uint64_t key(std::uint64_t thread, std::uint64_t number) {
    return mix(mix(1, thread), number) | 1;
  }

 private:
  void find() {
    if (tried_.load(std::memory_order_acquire)) return;
    peek_ = of_torch<std::uint64_t()>("_ZN2at15sequence_number4peekEv");
    thread_ = of_torch<std::uint64_t()>("_ZN2at14RecordFunction15currentThreadIdEv");
    current_ = of_torch<void(std::uint64_t*)>("_ZN5torch8autograd16get_current_nodeEv");
    if (peek_ != nullptr) tried_.store(true, std::memory_order_release);
  }
  std::atomic<bool> tried_{false};
  std::uint64_t (*peek_)() = nullptr;
  std::uint64_t (*thread_)() = nullptr;
  void (*current_)(std::uint64_t*) = nullptr;
};

// Places of forward ops by key. A fixed table: a later op may take an earlier one's entry, which
// costs that one its place and nothing else.
class ForwardPlaces {
 public:
  void put(std::uint64_t key, std::uint32_t stack) {
    Entry& entry = entries_[key % entries_.size()];
    if (entry.key.load(std::memory_order_relaxed) == key) return;  // the op's first launch counts
    entry.stack.store(stack, std::memory_order_relaxed);
    entry.key.store(key, std::memory_order_release);
  }
  std::uint32_t find(std::uint64_t thread, std::uint64_t number) const {
    // Views make nodes without launching anything: the next op of the thread stands for them.
    constexpr std::uint64_t near = 8;
    for (std::uint64_t next = number; next < number + near; ++next) {
      const std::uint64_t key = Autograd::key(thread, next);
      const Entry& entry = entries_[key % entries_.size()];
      if (entry.key.load(std::memory_order_acquire) == key)
        return entry.stack.load(std::memory_order_relaxed);
    }
    return no_stack;
  }

 private:
  struct Entry {
    std::atomic<std::uint64_t> key{};
    std::atomic<std::uint32_t> stack{};
  };
  std::array<Entry, 1 << 16> entries_{};
};

// What is said of a code object when it is first seen.
struct Code {
  std::uintptr_t identity{};
  std::string file, function;
  bool calls_module{};  // nn.Module's own call: its first argument is the module
  bool generated{};     // by torch.compile
};

// The file names go into the source as hexadecimal digits, so that no character needs an escape.
std::string python_list(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) {
    out += "bytes.fromhex('";
    for (const char c : text) {
      char digits[3];
      std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(c));
      out += digits;
    }
    out += "').decode('utf-8', 'replace'), ";
  }
  return out + "]";
}

class Places {
 public:
  void begin(const std::string& directory) {
    std::lock_guard guard(mutex_);
    if (file_ != nullptr || directory.empty()) return;
    const std::string name = "process-" + std::to_string(getpid()) + ".places";
    list_in_manifest(name);
    const int file = ::open((directory + "/" + name).c_str(),
                            O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                            0600);  // as the recordings: paths are nobody else's business
    file_ = file < 0 ? nullptr : ::fdopen(file, "w");
    if (file_ == nullptr) return;
    std::fputs("maya places 1\n", file_);
    PythonFrames::learn_soon();
  }

  void end() {
    std::lock_guard guard(mutex_);
    if (file_ != nullptr) std::fclose(file_);
    file_ = nullptr;
  }

  void abandon() { file_ = nullptr; }  // the parent's buffer is not ours to write

  void note(std::uint16_t thread, bool work) {
    thread_local std::uint64_t records = 0;
    thread_local std::uint32_t last = no_stack;
    const std::uint64_t record = records++;
    if (!work || file_ == nullptr) return;
    const std::uint32_t stack = current();
    if (stack == last) return;
    last = stack;
    // By hand: this is the one line that is written for every other launch.
    char line[64] = "p";
    char* end = line + 1;
    for (const std::uint64_t number : {std::uint64_t{thread}, record, std::uint64_t{stack}}) {
      *end++ = ' ';
      end = std::to_chars(end, line + sizeof line, number).ptr;
    }
    *end++ = '\n';
    std::lock_guard guard(mutex_);
    if (file_ != nullptr) fwrite_unlocked(line, 1, static_cast<std::size_t>(end - line), file_);
  }

  void name_modules(const char* lines) {
    std::lock_guard guard(mutex_);
    if (file_ != nullptr) std::fputs(lines, file_);
  }

  void names_known(std::uintptr_t root) {
    std::lock_guard guard(mutex_);
    named_roots_.insert(root);
  }

 private:
  std::uint32_t current() {
    PythonFrame frames[most_frames];
    const int count = PythonFrames::read(frames, most_frames);
    if (count == 0) return without_frames();
    std::uint64_t hash = 0;
    std::uintptr_t module = 0, root = 0;
    for (int i = 0; i < count; ++i) {
      hash = mix(hash, frames[i].code);
      hash = mix(hash, frames[i].instruction);
      if (!calls_module(frames[i].code)) continue;
      const std::uintptr_t self = PythonFrames::first_argument(frames[i].frame);
      if (self == 0) continue;
      if (module == 0) module = self;
      root = self;
    }
    hash = mix(hash, module);
    // Python code that the autograd engine calls in a thread of its own (hooks, backward() of a
    // function): what called loss.backward() is below it.
    std::uint64_t thread = 0, number = 0;
    std::uint32_t below = no_stack;
    const bool engine = autograd_.node(thread, number);
    if (engine && !is_main(frames[count - 1].code)) {
      below = last_python_.load(std::memory_order_relaxed);
      hash = mix(hash, below);
    }
    const std::uint32_t stack = stack_of(hash, frames, count, module, root, below);
    if (const std::uint64_t key = autograd_.forward_key()) forward_.put(key, stack);
    if (!engine) last_python_.store(stack, std::memory_order_relaxed);
    return stack;
  }

  bool is_main(std::uintptr_t code) {
    std::lock_guard guard(mutex_);
    return code_of(code).function == "<module>";
  }

  // A thread of the autograd engine, or one that has nothing to do with Python.
  std::uint32_t without_frames() {
    std::uint64_t thread = 0, number = 0;
    if (!autograd_.node(thread, number)) return no_stack;
    std::uint32_t forward = forward_.find(thread, number);
    // A node without a forward op (gradients are accumulated, buckets reduced): the line that
    // called backward(), which is the last that Python did.
    const bool tied = forward != no_stack;
    if (!tied) forward = last_python_.load(std::memory_order_relaxed);
    std::lock_guard guard(mutex_);
    auto [found, added] = backward_.try_emplace(forward * 2 + (tied ? 1 : 0), next_);
    if (added) {
      ++next_;
      std::fprintf(file_, "b %u %u %d\n", found->second, forward, tied ? 1 : 0);
    }
    return found->second;
  }

  // Whether this is the code of nn.Module's call; a small cache in front of the table, by thread.
  bool calls_module(std::uintptr_t code) {
    struct Known {
      std::uintptr_t code, identity;
      bool calls;
    };
    // Behind a pointer: memory of threads is short where the library is opened late. Never
    // released, as threads that record live as long as the process.
    using Cache = std::array<Known, 128>;
    thread_local Cache* known = nullptr;
    if (known == nullptr) known = new Cache{};
    Known& entry = (*known)[(code >> 5) % known->size()];
    const std::uintptr_t identity = PythonFrames::identity(code);
    if (entry.code != code || entry.identity != identity) {
      std::lock_guard guard(mutex_);
      entry = {code, identity, code_of(code).calls_module};
    }
    return entry.calls;
  }

  const Code& code_of(std::uintptr_t code) {  // under the lock
    Code& known = codes_[code];
    const std::uintptr_t identity = PythonFrames::identity(code);
    if (known.identity == identity) return known;
    known = {identity, PythonFrames::file(code), PythonFrames::function(code)};
    const bool of_modules = known.file.find("torch/nn/modules/module.py") != std::string::npos;
    // Not the functions inside of it, whose first variable is something else.
    constexpr std::string_view call = "_call_impl";
    known.calls_module =
        of_modules && known.function.size() >= call.size() &&
        known.function.compare(known.function.size() - call.size(), call.size(), call) == 0;
    known.generated = (known.function == "Runner.call" || known.function == "call") &&
                      known.file.find("-packages/") == std::string::npos;
    return known;
  }

  std::uint32_t stack_of(std::uint64_t hash, const PythonFrame* frames, int count,
                         std::uintptr_t module, std::uintptr_t root, std::uint32_t below) {
    std::lock_guard guard(mutex_);
    auto [found, added] = stacks_.try_emplace(hash, next_);
    if (!added || file_ == nullptr) return found->second;
    ++next_;
    std::fprintf(file_, "s %u %llx", found->second, static_cast<unsigned long long>(module));
    bool ask = false;
    for (int i = 0; i < count; ++i) {
      const Code& code = code_of(frames[i].code);
      if (code.generated && generated_.insert(code.file).second)
        wanted_.push_back(code.file), ask = true;
      std::fprintf(file_, "\t%d:%s:%s", PythonFrames::line(frames[i]), code.function.c_str(),
                   code.file.c_str());
    }
    std::fputc('\n', file_);
    if (below != no_stack) std::fprintf(file_, "u %u %u\n", found->second, below);
    if (module != 0 && seen_modules_.insert(module).second)
      std::fprintf(file_, "c %llx %.200s\n", static_cast<unsigned long long>(module),
                   PythonFrames::class_of(module));
    if (root != 0 && named_roots_.count(root) == 0 && tries_ < most_tries) ask = true;
    if (ask) ask_for_names();
    return found->second;
  }

  // Names of modules are the interpreter's to tell: between two of its instructions it walks the
  // modules whose calls are under way. If none is by then, the next new stack asks again.
  void ask_for_names() {
    using Later = int(int (*)(void*), void*);
    static auto* later = reinterpret_cast<Later*>(dlsym(RTLD_DEFAULT, "Py_AddPendingCall"));
    if (later == nullptr || asked_.exchange(true)) return;
    ++tries_;
    if (later(&Places::tell_names, nullptr) != 0) asked_.store(false);
  }
  static int tell_names(void*);

  static constexpr int most_tries = 100;

  std::mutex mutex_;
  std::FILE* file_ = nullptr;
  Autograd autograd_;
  ForwardPlaces forward_;
  std::atomic<std::uint32_t> last_python_{no_stack};
  std::unordered_map<std::uint64_t, std::uint32_t> stacks_;    // by hash of frames and module
  std::unordered_map<std::uint64_t, std::uint32_t> backward_;  // by forward stack and whether tied
  std::unordered_map<std::uintptr_t, Code> codes_;
  std::unordered_set<std::uintptr_t> seen_modules_, named_roots_;
  std::unordered_set<std::string> generated_;  // files of torch.compile that have run
  std::vector<std::string> wanted_;            // those whose lines are still to be read
  std::uint32_t next_ = 1;
  int tries_ = 0;
  std::atomic<bool> asked_{false};
};

// Never destroyed: threads may still record while the process ends.
Places& places() {
  static Places* the = new Places;
  return *the;
}

extern "C" void maya_module_names(const char* lines, std::uint64_t root) {
  places().name_modules(lines);
  places().names_known(root);
}

extern "C" void maya_generated_lines(const char* lines) { places().name_modules(lines); }

int Places::tell_names(void*) {
  places().asked_.store(false);
  std::vector<std::string> files;
  {
    std::lock_guard guard(places().mutex_);
    files.swap(places().wanted_);
  }
  if (!files.empty())
    run_python(
        "address = " + std::to_string(reinterpret_cast<std::uintptr_t>(&maya_generated_lines)) +
            "\npaths = " + python_list(files) + "\n" + generated_lines,
        "lines of compiled code cannot be read");
  run_python("address = " + std::to_string(reinterpret_cast<std::uintptr_t>(&maya_module_names)) +
                 "\n" + module_names,
             "names of modules cannot be read");
  return 0;
}

}  // namespace

void note_place(std::uint16_t thread, bool work) { places().note(thread, work); }
void begin_places(const std::string& directory) { places().begin(directory); }
void finish_places() { places().end(); }
void abandon_places() { places().abandon(); }

}  // namespace maya::session
