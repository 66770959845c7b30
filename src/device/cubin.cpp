#include "device/cubin.h"

#include <elf.h>
#include <zstd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>

#include "device/lz4.h"

namespace maya::device {
namespace {

constexpr std::uint32_t container_magic = 0xBA55ED50;
constexpr std::uint32_t wrapper_magic = 0x466243b1;  // __fatBinC_Wrapper_t
constexpr std::uint32_t wrapper2_magic = 0x466243b2;

struct Container {
  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t bytes;
};
struct Entry {
  std::uint16_t kind, version;  // kind 1: PTX, 2: ELF
  std::uint32_t header_bytes;
  std::uint64_t payload_bytes;
  std::uint32_t compressed_bytes, unused;
  std::uint16_t minor, major;
  std::uint32_t capability, name_offset, name_bytes;
  std::uint64_t flags, zero, raw_bytes;
};
static_assert(sizeof(Entry) == 64);
constexpr std::uint64_t flag_lz4 = 0x2000, flag_zstd = 0x8000;
constexpr std::uint64_t flag_exact = 0x100000;   // sm_90a and the like
constexpr std::uint64_t flag_family = 0x200000;  // sm_100f and the like

struct Wrapper {
  std::uint32_t magic, version;
  const void* data;
  const void* extra;
};

std::vector<char> payload(const char* begin, const Entry& entry) {
  const char* stored = begin + entry.header_bytes;
  // No cubin comes near either; a damaged size would, and memory is taken by it.
  constexpr std::uint64_t largest = std::uint64_t{1} << 32, best_compression = 1024;
  if (entry.compressed_bytes > entry.payload_bytes || entry.raw_bytes > largest) return {};
  if ((entry.flags & (flag_zstd | flag_lz4)) &&
      entry.raw_bytes > best_compression * entry.compressed_bytes)
    return {};
  if (entry.flags & flag_zstd) {
    std::vector<char> out(entry.raw_bytes);
    std::size_t size = ZSTD_decompress(out.data(), out.size(), stored, entry.compressed_bytes);
    return ZSTD_isError(size) ? std::vector<char>() : out;
  }
  if (entry.flags & flag_lz4) {
    std::vector<char> out(entry.raw_bytes);
    return lz4_decompress(stored, entry.compressed_bytes, out.data(), out.size())
               ? out
               : std::vector<char>();
  }
  return {stored, stored + entry.payload_bytes};
}

// Larger is better; negative: cannot run.
int fitness(const Entry& entry, int capability) {
  int built = static_cast<int>(entry.capability);
  if (entry.kind == 2) {
    if (entry.flags & flag_exact) return built == capability ? 3000 : -1;
    if (built / 10 != capability / 10 || built > capability) return -1;
    return 1000 + built;
  }
  if (entry.kind == 1) return built <= capability && !(entry.flags & flag_exact) ? built : -1;
  return -1;
}

// 0: the headers do not fit together, or lead outside of `room`.
std::size_t elf_bytes(const char* data, std::size_t room) {
  Elf64_Ehdr header;
  if (room < sizeof header) return 0;
  std::memcpy(&header, data, sizeof header);
  std::size_t end = sizeof header;
  // Sums of 64-bit numbers that a file holds overflow; both parts below `room` do not.
  auto extend = [&](std::uint64_t at, std::uint64_t bytes) {
    if (at > room || bytes > room - at) return false;
    end = std::max<std::size_t>(end, at + bytes);
    return true;
  };
  // Kernels are sections: without any, this is the begin of a file that was cut off.
  if (header.e_shnum == 0 || header.e_shentsize != sizeof(Elf64_Shdr) ||
      header.e_shstrndx >= header.e_shnum)
    return 0;
  if (!extend(header.e_phoff, std::uint64_t{header.e_phnum} * header.e_phentsize) ||
      !extend(header.e_shoff, std::uint64_t{header.e_shnum} * header.e_shentsize))
    return 0;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, data + header.e_shoff + std::size_t{i} * header.e_shentsize,
                sizeof section);
    if (i == 0 && section.sh_type != SHT_NULL) return 0;
    if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
        !extend(section.sh_offset, section.sh_size))
      return 0;
  }
  return end;
}

// PTX says its version and target first, and its last function is closed.
bool is_ptx(std::string_view text) {
  return text.find(".version") != std::string_view::npos &&
         text.find(".target") != std::string_view::npos &&
         std::count(text.begin(), text.end(), '{') == std::count(text.begin(), text.end(), '}');
}

bool is_elf(const void* data) { return std::memcmp(data, ELFMAG, SELFMAG) == 0; }

int elf_capability(std::string_view bytes) {
  Elf64_Ehdr header;
  if (bytes.size() < sizeof header) return 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  // CUDA 13's ABI moved the SM number up one byte.
  int low = static_cast<int>(header.e_flags & 0xff),
      high = static_cast<int>((header.e_flags >> 8) & 0xff);
  return header.e_ident[EI_ABIVERSION] >= 8 ? high : low;
}

// Of a line such as ".target sm_90a, texmode_independent"; 0: none.
int ptx_target(std::string_view text) {
  std::size_t at = text.find(".target");
  at = at == std::string_view::npos ? at : text.find("sm_", at);
  int capability = 0;
  if (at != std::string_view::npos)
    std::from_chars(text.data() + at + 3, text.data() + text.size(), capability);
  return capability;
}

// A checked view of an ELF image's sections.
class Sections {
 public:
  explicit Sections(std::string_view bytes) : bytes_(bytes) {
    if (bytes.size() < sizeof header_) return;
    std::memcpy(&header_, bytes.data(), sizeof header_);
    if (header_.e_shentsize != sizeof(Elf64_Shdr) || header_.e_shnum == 0) return;
    std::uint64_t end = header_.e_shoff + std::uint64_t{header_.e_shnum} * sizeof(Elf64_Shdr);
    if (header_.e_shoff > bytes.size() || end > bytes.size()) return;
    sections_.resize(header_.e_shnum);
    std::memcpy(sections_.data(), bytes.data() + header_.e_shoff, end - header_.e_shoff);
  }
  const std::vector<Elf64_Shdr>& all() const { return sections_; }
  std::string_view content(const Elf64_Shdr& s) const {
    if (s.sh_type == SHT_NOBITS || s.sh_offset > bytes_.size() ||
        s.sh_size > bytes_.size() - s.sh_offset)
      return {};
    return {bytes_.data() + s.sh_offset, s.sh_size};
  }
  std::string_view name(const Elf64_Shdr& s) const {
    return header_.e_shstrndx < sections_.size() ? text(sections_[header_.e_shstrndx], s.sh_name)
                                                 : std::string_view();
  }
  std::string_view text(const Elf64_Shdr& table, std::size_t offset) const {
    std::string_view strings = content(table);
    if (offset >= strings.size()) return {};
    strings.remove_prefix(offset);
    return strings.substr(0, strings.find('\0'));
  }

 private:
  std::string_view bytes_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
};

// .nv.info.<kernel>: a list of (format, attribute, size or value, payload).
void read_info(std::string_view info, KernelCode& kernel) {
  constexpr std::uint8_t sized = 4, attribute_parameter = 0x17, attribute_max_threads = 0x05;
  // Kernels with more than 4 KB of arguments: the same fields, the size not packed.
  constexpr std::uint8_t attribute_parameter_large = 0x45;
  while (info.size() >= 4) {
    auto format = static_cast<std::uint8_t>(info[0]),
         attribute = static_cast<std::uint8_t>(info[1]);
    std::uint16_t value;
    std::memcpy(&value, info.data() + 2, 2);
    std::size_t size = format == sized ? value : 0;
    if (info.size() < 4 + size) return;
    const char* body = info.data() + 4;
    if ((attribute == attribute_parameter || attribute == attribute_parameter_large) &&
        format == sized && size >= 12) {
      std::uint16_t ordinal, offset;
      std::uint32_t packed;
      std::memcpy(&ordinal, body + 4, 2), std::memcpy(&offset, body + 6, 2);
      std::memcpy(&packed, body + 8, 4);
      if (ordinal < 4096) {
        if (kernel.parameter_offsets.size() <= ordinal) {
          kernel.parameter_offsets.resize(ordinal + 1u);
          kernel.parameter_sizes.resize(ordinal + 1u);
        }
        kernel.parameter_offsets[ordinal] = offset;
        kernel.parameter_sizes[ordinal] =
            static_cast<std::uint16_t>(attribute == attribute_parameter ? packed >> 18 : packed);
      }
    } else if (attribute == attribute_max_threads && format == sized && size >= 12) {
      std::uint32_t xyz[3];
      std::memcpy(xyz, body, 12);
      kernel.max_threads = xyz[0] * xyz[1] * xyz[2];
    }
    info.remove_prefix(4 + size);
  }
}

// .nv.info, of the whole image: registers and stack of each kernel, by the number of its symbol.
// Older compilers also left the registers in the header of the kernel's section.
void read_resources(const Sections& sections,
                    std::unordered_map<std::string, KernelCode>& kernels) {
  constexpr std::uint8_t sized = 4, attribute_registers = 0x2f, attribute_frame = 0x11;
  const Elf64_Shdr *info_section = nullptr, *symbols = nullptr;
  for (const auto& s : sections.all()) {
    if (sections.name(s) == ".nv.info") info_section = &s;
    if (s.sh_type == SHT_SYMTAB) symbols = &s;
  }
  if (info_section == nullptr || symbols == nullptr || symbols->sh_link >= sections.all().size())
    return;
  const Elf64_Shdr& names = sections.all()[symbols->sh_link];
  const std::string_view table = sections.content(*symbols);
  for (std::string_view info = sections.content(*info_section); info.size() >= 4;) {
    std::uint16_t value;
    std::memcpy(&value, info.data() + 2, 2);
    const bool has_body = static_cast<std::uint8_t>(info[0]) == sized;
    const std::size_t size = has_body ? value : 0;
    if (info.size() < 4 + size) return;
    const auto attribute = static_cast<std::uint8_t>(info[1]);
    const bool wanted = attribute == attribute_registers || attribute == attribute_frame;
    if (has_body && wanted && size >= 8) {
      std::uint32_t number, count;
      std::memcpy(&number, info.data() + 4, 4), std::memcpy(&count, info.data() + 8, 4);
      if (number < table.size() / sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        std::memcpy(&symbol, table.data() + number * sizeof symbol, sizeof symbol);
        const auto it = kernels.find(std::string(sections.text(names, symbol.st_name)));
        if (it != kernels.end() && attribute == attribute_registers)
          it->second.registers = static_cast<std::uint16_t>(count);
        else if (it != kernels.end())
          it->second.local_bytes = count;
      }
    }
    info.remove_prefix(4 + size);
  }
}

std::unordered_map<std::string, KernelCode> elf_kernels(const Image& image) {
  std::unordered_map<std::string, KernelCode> out;
  Sections sections(std::string_view(image.bytes.data(), image.bytes.size()));
  const auto after = [](std::string_view name, std::string_view prefix) {
    return name.substr(0, prefix.size()) == prefix ? name.substr(prefix.size())
                                                   : std::string_view();
  };
  for (const auto& s : sections.all()) {
    std::string_view name = after(sections.name(s), ".nv.info.");
    if (name.empty()) continue;
    auto& kernel = out[std::string(name)];
    kernel.name = name;
    read_info(sections.content(s), kernel);
  }
  for (const auto& s : sections.all()) {
    std::string_view full = sections.name(s);
    if (auto text = after(full, ".text."); !text.empty()) {
      if (auto it = out.find(std::string(text)); it != out.end())
        it->second.registers = static_cast<std::uint16_t>(s.sh_info >> 24);
    } else if (auto shared = after(full, ".nv.shared."); !shared.empty()) {
      if (auto it = out.find(std::string(shared)); it != out.end())
        it->second.static_shared = static_cast<std::uint32_t>(s.sh_size);
    }
  }
  read_resources(sections, out);
  return out;
}

std::uint16_t ptx_type_bytes(std::string_view type) {
  std::size_t digits = type.find_first_of("0123456789");
  if (digits == std::string_view::npos) return type == ".pred" ? 1 : 8;
  int bits = std::atoi(std::string(type.substr(digits)).c_str());
  return static_cast<std::uint16_t>(std::max(bits / 8, 1));
}

// `.entry name( .param .u64 a, .param .align 4 .b8 b[12] )`
std::unordered_map<std::string, KernelCode> ptx_kernels(std::string_view ptx) {
  std::unordered_map<std::string, KernelCode> out;
  for (std::size_t at = ptx.find(".entry"); at != std::string_view::npos;
       at = ptx.find(".entry", at + 6)) {
    std::size_t begin = ptx.find_first_not_of(" \t\r\n", at + 6);
    if (begin == std::string_view::npos) break;
    std::size_t end = ptx.find_first_of(" \t\r\n(", begin);
    if (end == std::string_view::npos) break;
    KernelCode kernel;
    kernel.name = ptx.substr(begin, end - begin);
    std::size_t open = ptx.find_first_not_of(" \t\r\n", end);
    if (open != std::string_view::npos && ptx[open] == '(') {
      std::size_t close = ptx.find(')', open);
      std::string_view list =
          ptx.substr(open + 1, close == std::string_view::npos ? 0 : close - open - 1);
      std::uint32_t offset = 0;
      while (!list.empty()) {
        std::size_t comma = list.find(',');
        std::string_view one = list.substr(0, comma);
        list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
        if (one.find(".param") == std::string_view::npos) continue;
        std::uint32_t size = 8, align = 0;
        std::size_t word = 0;
        while ((word = one.find('.', word)) != std::string_view::npos) {
          std::string_view token = one.substr(word, one.find_first_of(" \t\r\n", word) - word);
          if (token == ".align") {
            align =
                static_cast<std::uint32_t>(std::atoi(std::string(one.substr(word + 6)).c_str()));
          } else if (token.size() > 2 && std::isdigit(static_cast<unsigned char>(token.back()))) {
            size = ptx_type_bytes(token);
          }
          word += std::max<std::size_t>(token.size(), 1);
        }
        if (std::size_t bracket = one.find('['); bracket != std::string_view::npos)
          size *=
              static_cast<std::uint32_t>(std::atoi(std::string(one.substr(bracket + 1)).c_str()));
        if (align == 0) align = std::min<std::uint32_t>(std::max<std::uint32_t>(size, 1), 8);
        offset = (offset + align - 1) / align * align;
        kernel.parameter_offsets.push_back(static_cast<std::uint16_t>(offset));
        kernel.parameter_sizes.push_back(static_cast<std::uint16_t>(size));
        offset += size;
      }
    }
    out.emplace(kernel.name, std::move(kernel));
  }
  return out;
}

}  // namespace

const void* unwrap(const void* data, std::size_t room) {
  std::uint32_t magic;
  if (room < sizeof magic) return data;
  std::memcpy(&magic, data, 4);
  if (room < sizeof(Wrapper) || (magic != wrapper_magic && magic != wrapper2_magic)) return data;
  Wrapper wrapper;
  std::memcpy(&wrapper, data, sizeof wrapper);
  return wrapper.data;
}

std::size_t image_bytes(const void* data, std::size_t room) {
  if (data == nullptr || room < 4) return 0;
  if (is_elf(data)) return elf_bytes(static_cast<const char*>(data), room);
  std::uint32_t magic;
  std::memcpy(&magic, data, 4);
  if (magic == container_magic) {
    Container container;
    if (room < sizeof container) return 0;
    std::memcpy(&container, data, sizeof container);
    if (container.header_bytes < sizeof container || container.header_bytes > room ||
        container.bytes > room - container.header_bytes)
      return 0;
    return container.header_bytes + container.bytes;
  }
  const auto* text = static_cast<const char*>(data);
  const auto first = static_cast<unsigned char>(text[0]);
  if (!std::isprint(first) && !std::isspace(first)) return 0;
  const std::size_t bytes = strnlen(text, room);
  return is_ptx({text, bytes}) ? bytes : 0;
}

ImageSet unpack(const void* data, int capability, std::size_t room) {
  ImageSet set;
  if (data == nullptr) {
    set.fault = ImageFault::invalid;
    return set;
  }
  if (const void* inside = unwrap(data, room); inside != data) data = inside, room = any_room;
  std::size_t total = image_bytes(data, room);
  const char* begin = static_cast<const char*>(data);
  if (total == 0) {
    set.fault = ImageFault::invalid;
    return set;
  }
  if (is_elf(data)) {
    Image image{{begin, begin + total}, false, 0};
    image.capability = elf_capability({image.bytes.data(), image.bytes.size()});
    bool runs = image.capability / 10 == capability / 10 && image.capability <= capability;
    if (image.capability != 0 && !runs) {
      set.fault = ImageFault::no_kernel_image;
      return set;
    }
    set.images.push_back(std::move(image));
    return set;
  }
  std::uint32_t magic;
  std::memcpy(&magic, data, 4);
  if (magic != container_magic) {
    Image image{{begin, begin + total}, true, 0};
    image.capability = ptx_target(image.ptx());
    set.images.push_back(std::move(image));
    return set;
  }
  struct Candidate {
    int fit;
    const char* at;
    Entry entry;
  };
  std::vector<Candidate> candidates;
  Container container;
  std::memcpy(&container, begin, sizeof container);
  const char* at = begin + container.header_bytes;
  const char* end = begin + total;
  while (static_cast<std::size_t>(end - at) >= sizeof(Entry)) {
    Entry entry;
    std::memcpy(&entry, at, sizeof entry);
    const auto room = static_cast<std::uint64_t>(end - at);
    if (entry.header_bytes < sizeof entry || entry.header_bytes > room ||
        entry.payload_bytes > room - entry.header_bytes)
      break;
    if (int fit = fitness(entry, capability); fit >= 0) candidates.push_back({fit, at, entry});
    at += entry.header_bytes + entry.payload_bytes;
  }
  if (candidates.empty()) {
    set.fault = ImageFault::no_kernel_image;
    return set;
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.fit > b.fit; });
  // SASS for the best plain capability, and the exact variant if there is one; PTX only without
  // SASS.
  bool sass = candidates.front().fit >= 1000;
  int plain = -1;
  for (const auto& c : candidates) {
    bool exact = c.fit == 3000;
    if (sass && c.fit < 1000) break;
    if (!exact && plain >= 0 && c.fit != plain) break;
    if (!exact) plain = c.fit;
    Image image{payload(c.at, c.entry), c.entry.kind == 1, static_cast<int>(c.entry.capability)};
    if (!image.bytes.empty()) set.images.push_back(std::move(image));
  }
  if (set.images.empty()) set.fault = ImageFault::invalid;
  return set;
}

std::unordered_map<std::string, KernelCode> kernels(const Image& image) {
  auto found = image.is_ptx ? ptx_kernels(image.ptx()) : elf_kernels(image);
  for (auto& [name, code] : found) {
    code.ptx_version = image.capability;
    code.binary_version = image.is_ptx ? 0 : image.capability;
  }
  return found;
}

std::unordered_map<std::string, std::uint64_t> variables(const Image& image) {
  std::unordered_map<std::string, std::uint64_t> out;
  if (image.is_ptx) return out;
  Sections sections(std::string_view(image.bytes.data(), image.bytes.size()));
  for (const auto& s : sections.all()) {
    if (s.sh_type != SHT_SYMTAB || s.sh_link >= sections.all().size()) continue;
    std::string_view symbols = sections.content(s);
    for (std::size_t i = 0; i + sizeof(Elf64_Sym) <= symbols.size(); i += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, symbols.data() + i, sizeof symbol);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL)
        continue;
      std::string_view name = sections.text(sections.all()[s.sh_link], symbol.st_name);
      if (!name.empty()) out[std::string(name)] = symbol.st_size;
    }
  }
  return out;
}

std::string_view code_of(std::string_view cubin, std::string_view kernel) {
  constexpr int volta = 70;
  if (elf_capability(cubin) < volta) return {};
  const std::string wanted = ".text." + std::string(kernel);
  const Sections sections(cubin);
  for (const auto& section : sections.all())
    if (sections.name(section) == wanted) return sections.content(section);
  return {};
}

}  // namespace maya::device
