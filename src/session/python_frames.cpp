#include "session/python_frames.h"

#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "session/python_code.h"

namespace maya::session {
namespace {

using Word = std::uintptr_t;

template <class F>
F* find(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

Word word(Word at) { return *reinterpret_cast<const Word*>(at); }

// For addresses that need not be mapped.
bool safe_word(Word at, Word& to) {
  iovec here{&to, sizeof to}, there{reinterpret_cast<void*>(at), sizeof to};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(sizeof to);
}

// Some releases mark pointers in their lowest bits.
constexpr Word untagged(Word pointer) { return pointer & ~Word{7}; }

// Offsets in bytes; `cframe` 0: the thread state points to the frame itself.
struct Layout {
  Word current{}, cframe{}, cframe_frame{};          // of the thread state, of what stands between
  Word code{}, previous{}, instruction{}, locals{};  // of a frame
  Word first_instruction{}, filename{}, name{};      // of a code object
  Word code_type{}, cell_type{};
};

using State = void*();
using Line = int(void*, int);
using Length = std::intptr_t(void*);
using Character = std::uint32_t(void*, std::intptr_t);

struct Interpreter {
  State* state{};
  Line* line{};
  Length* length{};
  Character* character{};
};

Layout layout;
Interpreter interpreter;
std::atomic<bool> ready{false};

constexpr Word head = 16;  // reference count and type in front of every object

Word type_of(Word object) { return word(object + 8); }

// The offset of `value` in the words of [at + from, at + to); 0: not there (no field of interest
// is the first of its struct, except `code`, which is looked for by itself).
bool search(Word at, Word from, Word to, Word value, Word& found) {
  for (Word offset = from; offset < to; offset += 8)
    if (untagged(word(at + offset)) == value) return found = offset, true;
  return false;
}

// Where the thread state keeps its innermost frame: itself, or in a struct that it points to.
bool find_current(Word state, Word frame, Layout& l) {
  constexpr Word state_bytes = 256, between_bytes = 24;
  for (Word offset = 16; offset < state_bytes; offset += 8)
    if (word(state + offset) == frame) return l.current = offset, true;
  for (Word offset = 16; offset < state_bytes; offset += 8) {
    const Word pointer = word(state + offset);
    if (pointer < 4096 || pointer % 8 != 0) continue;
    for (Word inner = 0; inner < between_bytes; inner += 8)
      if (Word value = 0; safe_word(pointer + inner, value) && value == frame)
        return l.cframe = offset, l.cframe_frame = inner, true;
  }
  return false;
}

// Called by `inner` of the source below. Everything it is given is known, so that each offset is
// where the known value stands. Keeps `ready` false if anything is not as expected.
void probe(void* argument, void* inner_code, void* outer_code, void* file, void* name, void* cell) {
  auto* state_of = find<State>("PyGILState_GetThisThreadState");
  auto* frame_of = find<void*(void*)>("PyThreadState_GetFrame");
  auto* last = find<int(void*)>("PyFrame_GetLasti");  // from Python 3.11 on
  auto* line = find<Line>("PyCode_Addr2Line");
  auto* length = find<Length>("PyUnicode_GetLength");
  auto* character = find<Character>("PyUnicode_ReadChar");
  if (!state_of || !frame_of || !last || !line || !length || !character) return;
  void* state = state_of();
  void* object = state ? frame_of(state) : nullptr;
  if (object == nullptr) return;
  const int last_byte = last(object);
  const auto frame = word(reinterpret_cast<Word>(object) + head + 8);  // behind f_back
  if (auto* release = find<void(void*)>("Py_DecRef")) release(object);
  if (frame < 4096) return;

  Layout l;
  const auto code = reinterpret_cast<Word>(inner_code);
  constexpr Word frame_bytes = 128, code_bytes = 320;
  Word value = 0;
  if (!safe_word(frame, value) || !safe_word(frame + frame_bytes, value)) return;
  if (!search(frame, 0, frame_bytes, code, l.code)) return;
  // The frame below belongs to `outer`: of the words that point to one with its code, the first.
  bool found = false;
  for (Word offset = 0; offset < frame_bytes && !found; offset += 8) {
    const Word pointer = word(frame + offset);
    if (offset == l.code || pointer < 4096 || pointer % 8 != 0) continue;
    found =
        safe_word(pointer + l.code, value) && untagged(value) == reinterpret_cast<Word>(outer_code);
    l.previous = offset;
  }
  if (!found) return;
  found = false;
  for (Word offset = 0; offset < frame_bytes && !found; offset += 8) {
    const Word pointer = word(frame + offset);
    found = pointer > code + 64 && pointer < code + 4096 && pointer - code > Word(last_byte) + 64;
    if (found) l.instruction = offset, l.first_instruction = pointer - code - Word(last_byte);
  }
  if (!found || l.first_instruction >= code_bytes) return;
  if (!search(frame, l.instruction + 8, frame_bytes + 64, reinterpret_cast<Word>(argument),
              l.locals))
    return;
  if (!search(code, 24, code_bytes, reinterpret_cast<Word>(file), l.filename)) return;
  if (!search(code, 24, code_bytes, reinterpret_cast<Word>(name), l.name)) return;
  if (!find_current(reinterpret_cast<Word>(state), frame, l)) return;
  l.code_type = type_of(code);
  l.cell_type = type_of(reinterpret_cast<Word>(cell));
  layout = l;
  interpreter = {state_of, line, length, character};
  ready.store(true, std::memory_order_release);
}

int learn(void*) {
  char source[1024];
  std::snprintf(source, sizeof source, R"(
import ctypes
probe = ctypes.PYFUNCTYPE(None, *[ctypes.py_object] * 6)(%ld)
def outer(a):
    return inner(a)
class Of:  # so that a function's name with its class is another text than its name
    def inner(a):
        return probe(a, code, outer.__code__, code.co_filename, code.co_qualname, make().__closure__[0])
inner = Of.inner
code = inner.__code__
def make():
    x = 1
    return lambda: x
outer(object())
)",
                static_cast<long>(reinterpret_cast<Word>(&probe)));
  run_python(source, "Python stacks cannot be read");
  return 0;
}

std::string text(Word object) {
  std::string out;
  auto* unicode = reinterpret_cast<void*>(object);
  constexpr std::intptr_t most = 1000;
  std::intptr_t length = interpreter.length(unicode);
  // The end of a long path says more than its beginning.
  for (std::intptr_t i = length > most ? length - most : 0; i < length; ++i) {
    const std::uint32_t c = interpreter.character(unicode, i);
    if (c < 0x20 || c == 0x7f) {
      out += '?';
    } else if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += static_cast<char>(0xc0 | c >> 6);
      out += static_cast<char>(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
      out += static_cast<char>(0xe0 | c >> 12);
      out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
      out += static_cast<char>(0x80 | (c & 0x3f));
    } else {
      out += static_cast<char>(0xf0 | (c >> 18 & 7));
      out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
      out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
      out += static_cast<char>(0x80 | (c & 0x3f));
    }
  }
  return out;
}

}  // namespace

void PythonFrames::learn_soon() {
  using Later = int(int (*)(void*), void*);
  if (auto* later = has_python() ? find<Later>("Py_AddPendingCall") : nullptr)
    later(learn, nullptr);
}

bool PythonFrames::known() { return ready.load(std::memory_order_acquire); }

int PythonFrames::read(PythonFrame* to, int most) {
  if (!known()) return 0;
  const auto state = reinterpret_cast<Word>(interpreter.state());
  if (state == 0) return 0;
  Word frame = 0;
  if (layout.cframe != 0) {
    const Word between = word(state + layout.cframe);
    frame = between ? word(between + layout.cframe_frame) : 0;
  } else {
    frame = word(state + layout.current);
  }
  int count = 0;
  for (int steps = 0; frame != 0 && count < most && steps < 4 * most; ++steps) {
    const Word code = untagged(word(frame + layout.code));
    // Between frames of C and of Python stand some that have no code of the program.
    if (code != 0 && type_of(code) == layout.code_type)
      to[count++] = {frame, code, word(frame + layout.instruction)};
    frame = word(frame + layout.previous);
  }
  return count;
}

std::string PythonFrames::file(std::uintptr_t code) { return text(word(code + layout.filename)); }
std::string PythonFrames::function(std::uintptr_t code) { return text(word(code + layout.name)); }

int PythonFrames::line(const PythonFrame& frame) {
  const Word offset = frame.instruction - frame.code - layout.first_instruction;
  return interpreter.line(reinterpret_cast<void*>(frame.code), static_cast<int>(offset));
}

std::uintptr_t PythonFrames::identity(std::uintptr_t code) {
  return word(code + layout.filename) ^ word(code + layout.name);
}

std::uintptr_t PythonFrames::first_argument(std::uintptr_t frame) {
  Word object = untagged(word(frame + layout.locals));
  // An argument that an inner function uses too lies in a cell.
  if (object != 0 && type_of(object) == layout.cell_type) object = word(object + head);
  return object;
}

const char* PythonFrames::class_of(std::uintptr_t object) {
  const Word name = word(type_of(object) + 24);  // behind the head of an object with a size
  return reinterpret_cast<const char*>(name);
}

}  // namespace maya::session
