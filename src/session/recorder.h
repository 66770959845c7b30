// Turns what happens into records: interns ops and names, attaches thread and host time.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "maya/trace.h"
#include "session/settings.h"
#include "trace/writer.h"

namespace maya::session {

class Recorder {
 public:
  explicit Recorder(const Settings& settings) : settings_(settings) {}

  // Creates the files; called when the program first does something on the device. Other threads
  // that come meanwhile wait here, so nothing that they do is lost.
  void begin();
  bool begun() const { return ready_.load(std::memory_order_acquire); }
  // Whether any thread has come to begin(): what belongs to this process is not its child's.
  bool touched() const { return begun_; }
  void finish();
  void abandon();  // in a forked child

  void record(trace::Kind kind, std::uint16_t stream, std::uint32_t value, std::uint8_t flags = 0,
              std::uint16_t aux = 0);
  void record_wide(trace::Kind kind, std::uint32_t x, std::uint64_t y, std::uint32_t value,
                   std::uint16_t stream = 0, std::uint8_t flags = 0);

  // The calling thread is about to wait for another one. Its host time so far lies before that wait,
  // and what comes after it in its next record.
  void record_sleep();

  // What PyTorch's allocator hands out and takes back. Host time stays with the next record.
  void tensor_allocated(std::uint64_t address, std::uint64_t bytes, std::uint16_t pool);
  void tensor_released(std::uint64_t address);

  // Number of the op, defining it if it is new.
  std::uint32_t op(const Op& op);
  std::uint32_t op(const Work& work, const char* name);
  std::uint32_t text(std::string_view text);
  std::uint32_t graph(const trace::Graph& graph);
  std::uint16_t communicator(const trace::Communicator& communicator);

  void unimplemented(const char* library, const char* function);
  void warning(const std::string& what);
  void version(const std::string& library, const std::string& version);
  // The rank was not in the environment and a communicator tells it.
  void learn_rank(int rank, int world_size);

  // What has been defined, by its number.
  Op op_of(std::uint32_t number);
  trace::Graph graph_of(std::uint32_t number);
  trace::Communicator communicator_of(std::uint16_t number);

 private:
  void create_files();
  void write_identity();
  // Of the writer, with the name in the run's manifest.
  Status open(const std::string& path);
  bool rename(const std::string& path);
  // Host time of the thread for its next record; what does not fit there goes in front of it.
  std::uint32_t take_host_ns(std::uint16_t thread, std::uint8_t& flags);
  std::uint32_t define(std::uint64_t hash, Op op);

  const Settings& settings_;
  trace::Writer writer_;
  std::mutex mutex_;
  std::atomic<bool> begun_ = false;
  std::atomic<bool> ready_ = false;  // read without the mutex by every call
  bool finished_ = false;
  bool rank_known_ = false;
  trace::Identity identity_;
  std::unordered_map<std::uint64_t, std::uint32_t> ops_, graphs_;  // by hash
  std::vector<Op> op_table_;
  std::vector<trace::Graph> graph_table_;
  std::vector<trace::Communicator> communicator_table_;
  std::unordered_map<std::string, std::uint32_t> texts_;
  std::uint32_t next_op_ = 0, next_text_ = 0, next_graph_ = 0;
  std::uint16_t next_communicator_ = 0;
  std::map<std::string, std::uint64_t> unimplemented_, warnings_;
};

}  // namespace maya::session
