#include "report/places.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/files.h"
#include "base/visible.h"

namespace maya::report {
namespace {

// Removes and returns the text up to `end`; `end` itself is removed too.
std::string_view take(std::string_view& line, char end) {
  const std::size_t at = line.find(end);
  const std::string_view word = line.substr(0, at);
  line.remove_prefix(at == std::string_view::npos ? line.size() : at + 1);
  return word;
}

template <class T>
bool number(std::string_view word, T& to, int base = 10) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), to, base);
  return error == std::errc() && end == word.data() + word.size();
}

// Whether a file belongs to a package, to Python's library or to generated code of torch.compile.
bool is_library(const std::string& file) {
  for (const char* part : {"/site-packages/", "/dist-packages/", "/lib/python3", "torchinductor_"})
    if (file.find(part) != std::string::npos) return true;
  return file.empty() || file[0] == '<';
}

// The recorder writes at most 96 frames of a stack. Without limits a file of a few megabytes could
// ask for terabytes, because a gradient has a copy of the frames of its forward op.
constexpr std::uint32_t most_stacks = 1 << 20;
constexpr std::size_t most_frames = 256, most_text = 4096;

struct Change {
  std::uint64_t record;
  std::uint32_t stack;
};

class Reader {
 public:
  Places take_all(std::string_view text) {
    places_.modules.assign(1, "");
    places_.stacks.resize(1);
    while (!text.empty()) {
      std::string_view line = report::take(text, '\n');
      const std::string_view what = report::take(line, ' ');
      if (what == "s") stack(line);
      if (what == "b") backward(line);
      if (what == "p") change(line);
      if (what == "m" || what == "c") name(what == "m", line);
      if (what == "u") below(line);
      if (what == "g") generated(line);
    }
    for (Stack& stack : places_.stacks)
      if (!stack.backward) show_source_of_compiled(stack);
    for (std::size_t i = 0; i < places_.stacks.size(); ++i)
      if (const auto found = module_of_.find(static_cast<std::uint32_t>(i));
          found != module_of_.end())
        places_.stacks[i].module = module(found->second);
    for (std::size_t i = 0; i < places_.stacks.size(); ++i)
      if (Stack& stack = places_.stacks[i]; refers_.count(static_cast<std::uint32_t>(i)) > 0) {
        // A copy, because a backward place refers to its forward place.
        const std::uint32_t forward = stack.frames[0];
        stack.frames.clear();
        if (forward < i && refers_.count(forward) == 0) {
          stack.frames = places_.stacks[forward].frames;
          stack.module = stack.tied ? places_.stacks[forward].module : 0;
        }
      }
    return std::move(places_);
  }

  // The stack of each record: the place of a thread is valid until its next one. Only the records
  // that the recorder counts (session/places) are counted here.
  std::vector<std::uint32_t> spread(const trace::Recording& recording) const {
    std::vector<std::uint32_t> of_record(recording.records.size(), no_stack);
    struct Thread {
      std::uint64_t count{};
      std::size_t next{};
      std::uint32_t stack{no_stack};
    };
    std::map<std::uint32_t, Thread> threads;
    for (std::size_t i = 0; i < recording.records.size(); ++i) {
      const trace::Record& record = recording.records[i];
      using trace::Kind;
      if (record.kind == Kind::none || record.kind == Kind::host_gap || record.kind == Kind::wide ||
          record.kind == Kind::tensor_release)
        continue;
      Thread& thread = threads[record.thread];
      if (const auto changes = changes_.find(record.thread); changes != changes_.end())
        while (thread.next < changes->second.size() &&
               changes->second[thread.next].record <= thread.count)
          thread.stack = changes->second[thread.next++].stack;
      ++thread.count;
      of_record[i] = thread.stack;
    }
    return of_record;
  }

 private:
  void stack(std::string_view line) {
    std::uint32_t index = 0;
    std::uint64_t self = 0;
    if (!number(report::take(line, ' '), index) || index != places_.stacks.size() ||
        index > most_stacks || !number(report::take(line, '\t'), self, 16))
      return;
    Stack made;
    made.frames = frames(line);
    if (self != 0) module_of_[index] = self;
    places_.stacks.push_back(std::move(made));
  }

  std::vector<std::uint32_t> frames(std::string_view line) {
    std::vector<std::uint32_t> list;
    while (!line.empty() && list.size() < most_frames) {
      std::string_view text = report::take(line, '\t').substr(0, most_text);
      auto [known, added] =
          frames_.try_emplace(std::string(text), static_cast<std::uint32_t>(places_.frames.size()));
      if (added) {
        Frame frame;
        number(report::take(text, ':'), frame.line);
        frame.function = base::visible(report::take(text, ':'));
        frame.file = base::visible(text);
        frame.library = is_library(frame.file);
        places_.frames.push_back(std::move(frame));
      }
      list.push_back(known->second);
    }
    return list;
  }

  // Adds the frames of the stack that called the engine in which this one runs.
  void below(std::string_view line) {
    std::uint32_t index = 0, caller = 0;
    if (!number(report::take(line, ' '), index) || !number(line, caller) || caller >= index ||
        index >= places_.stacks.size() || places_.stacks[index].backward ||
        places_.stacks[caller].backward)
      return;
    auto& frames = places_.stacks[index].frames;
    const auto& outer = places_.stacks[caller].frames;
    if (frames.size() + outer.size() > most_frames) return;
    frames.insert(frames.end(), outer.begin(), outer.end());
  }

  // The program's frames for a line of a file that torch.compile generated.
  void generated(std::string_view line) {
    int first = 0, backward = 0;
    if (!number(report::take(line, ' '), first) || !number(report::take(line, ' '), backward))
      return;
    const std::string file = base::visible(report::take(line, '\t'));
    generated_[file][first] = {backward != 0, frames(line)};
  }

  // Replaces the generated frames, and what they call, by the lines of the program they were made
  // from. The compiled function's own frame only names its first line.
  void show_source_of_compiled(Stack& stack) {
    for (std::size_t i = 0; i < stack.frames.size(); ++i) {
      const Frame& frame = places_.frames[stack.frames[i]];
      const auto file = generated_.find(frame.file);
      if (file == generated_.end()) continue;
      auto entry = file->second.upper_bound(frame.line);
      if (entry == file->second.begin()) return;
      --entry;
      stack.backward = stack.tied = entry->second.backward;
      const std::vector<std::uint32_t>& source = entry->second.frames;
      if (source.empty()) return;
      std::size_t outer = i + 1;
      while (outer < stack.frames.size() && places_.frames[stack.frames[outer]].library) ++outer;
      const Frame& begins = places_.frames[source.back()];
      if (outer < stack.frames.size()) {
        const Frame& compiled = places_.frames[stack.frames[outer]];
        const std::size_t dot = compiled.function.rfind('.') + 1;  // npos + 1 is 0
        if (compiled.file == begins.file && compiled.function.substr(dot) == begins.function)
          ++outer;
      }
      std::vector<std::uint32_t> shown = source;
      shown.insert(shown.end(), stack.frames.begin() + static_cast<std::ptrdiff_t>(outer),
                   stack.frames.end());
      stack.frames = std::move(shown);
      return;
    }
  }

  void backward(std::string_view line) {
    std::uint32_t index = 0, forward = 0, tied = 0;
    if (!number(report::take(line, ' '), index) || index != places_.stacks.size() ||
        index > most_stacks || !number(report::take(line, ' '), forward) || !number(line, tied))
      return;
    Stack made;
    made.backward = true, made.tied = tied != 0;
    made.frames.push_back(forward);  // replaced by the actual frames when all are known
    refers_.insert(index);
    places_.stacks.push_back(std::move(made));
  }

  void change(std::string_view line) {
    std::uint32_t thread = 0;
    Change made{};
    if (number(report::take(line, ' '), thread) && number(report::take(line, ' '), made.record) &&
        number(line, made.stack) && made.stack < places_.stacks.size())
      changes_[thread].push_back(made);
  }

  // Sets the name of a module. Its path within the model has priority over the name of its class.
  void name(bool path, std::string_view line) {
    std::uint64_t self = 0;
    if (!number(report::take(line, ' '), self, 16) || line.empty()) return;
    auto& known = names_[self];
    if (path || known.empty()) known = base::visible(line.substr(0, most_text));
  }

  std::uint32_t module(std::uint64_t self) {
    const auto found = names_.find(self);
    const std::string name = found == names_.end() ? "module" : found->second;
    auto [known, added] =
        modules_.try_emplace(name, static_cast<std::uint32_t>(places_.modules.size()));
    if (added) places_.modules.push_back(name);
    return known->second;
  }

  Places places_;
  std::unordered_map<std::string, std::uint32_t> frames_, modules_;
  std::unordered_map<std::uint64_t, std::string> names_;
  std::unordered_map<std::uint32_t, std::uint64_t> module_of_;
  std::map<std::uint32_t, std::vector<Change>> changes_;
  std::unordered_set<std::uint32_t> refers_;  // backward places, which name a forward place
  struct Origin {
    bool backward{};
    std::vector<std::uint32_t> frames;
  };
  std::unordered_map<std::string, std::map<int, Origin>> generated_;  // by file and first line
};

}  // namespace

const Frame* Places::own(std::uint32_t stack) const {
  if (stack >= stacks.size() || stacks[stack].frames.empty()) return nullptr;
  for (const std::uint32_t frame : stacks[stack].frames)
    if (!frames[frame].library) return &frames[frame];
  return &frames[stacks[stack].frames[0]];
}

Result<Places> read_places(const std::string& path, const trace::Recording& recording) {
  constexpr std::size_t most = 256 << 20;
  auto text = base::read_file(path, most);
  if (!text) return text.error();
  constexpr std::string_view head = "maya places 1\n";
  if (text->rfind(head, 0) != 0)
    return Error{path + " is not a file of places of version 1; record the run again"};
  Reader reader;
  Places places = reader.take_all(std::string_view(*text).substr(head.size()));
  places.of_record = reader.spread(recording);
  return places;
}

}  // namespace maya::report
