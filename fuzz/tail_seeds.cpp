#include <cstring>

#include "maya/trace.h"
#include "mutate.h"
#include "trace/codec.h"
#include "trace/format.h"

namespace maya::fuzz {

using namespace trace;

std::vector<std::string> seeds() {
  Identity identity;
  identity.world_size = 2, identity.pid = 7, identity.gpu = "h100-sxm";
  std::string payload, units = "\1";
  encode(identity, payload);
  format::DefineUnit head{format::define_kind, format::Define::identity, 0,
                          static_cast<std::uint32_t>(payload.size()), 0};
  payload.resize((payload.size() + 15) / 16 * 16);
  units.append(reinterpret_cast<const char*>(&head), sizeof head).append(payload);
  payload.clear();
  encode(Op{Gemm{}, "gemm"}, payload);
  head = {format::define_kind, format::Define::op, 0, static_cast<std::uint32_t>(payload.size()),
          0};
  payload.resize((payload.size() + 15) / 16 * 16);
  units.append(reinterpret_cast<const char*>(&head), sizeof head).append(payload);
  for (int i = 0; i < 40; ++i) {
    const Record record{Kind::launch, 0, 0, 1000, 1, 0, 0};
    units.append(reinterpret_cast<const char*>(&record), sizeof record);
  }
  std::string file(1, '\0');
  format::TailHeader tail{};
  std::memcpy(tail.magic, format::tail_magic, 8);
  tail.version = format_version, tail.bytes = format::tail_bytes;
  file.append(reinterpret_cast<const char*>(&tail), sizeof tail);
  std::string old = file;
  std::memcpy(old.data() + 1, format::old_tail_magic, 8);
  return {units, file, old + units.substr(1)};
}

}  // namespace maya::fuzz
