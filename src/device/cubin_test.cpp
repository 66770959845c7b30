#include "device/cubin.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <cstring>
#include <random>

#include "device/lz4.h"

namespace maya::device {
namespace {

const char* ptx = R"(.version 8.0
.target sm_80
.visible .entry scale(
	.param .u64 scale_param_0,
	.param .f32 scale_param_1,
	.param .align 4 .b8 scale_param_2[12],
	.param .u8 scale_param_3
)
{ ret; }
.visible .entry empty() { ret; }
)";

struct Part {
  std::uint16_t kind;
  std::uint32_t capability;
  std::string payload;
  std::uint64_t flags = 0;
};

// A fat binary as nvcc lays it out: container header, then entries of 64-byte header and payload.
std::string container(const std::vector<Part>& parts) {
  std::string body;
  for (const auto& part : parts) {
    std::string stored = part.payload;
    if (part.flags & 0x8000) {
      stored.resize(ZSTD_compressBound(part.payload.size()));
      stored.resize(
          ZSTD_compress(stored.data(), stored.size(), part.payload.data(), part.payload.size(), 1));
    }
    std::uint32_t compressed = static_cast<std::uint32_t>(stored.size());
    stored.resize((stored.size() + 7) / 8 * 8);
    char header[64] = {};
    auto put = [&](std::size_t at, auto value) { std::memcpy(header + at, &value, sizeof value); };
    put(0, part.kind), put(2, std::uint16_t{0x101}), put(4, std::uint32_t{64}),
        put(8, std::uint64_t{stored.size()});
    put(16, compressed), put(28, part.capability), put(40, part.flags),
        put(56, std::uint64_t{part.payload.size()});
    body.append(header, 64).append(stored);
  }
  std::string out(16, '\0');
  std::uint32_t magic = 0xBA55ED50;
  std::uint16_t version = 1, bytes = 16;
  std::uint64_t size = body.size();
  std::memcpy(out.data(), &magic, 4), std::memcpy(out.data() + 4, &version, 2),
      std::memcpy(out.data() + 6, &bytes, 2);
  std::memcpy(out.data() + 8, &size, 8);
  return out + body;
}

TEST(Cubin, ReadsParametersOfPtx) {
  auto set = unpack(ptx, 80);
  ASSERT_EQ(set.images.size(), 1u);
  auto found = kernels(set.images[0]);
  ASSERT_EQ(found.count("scale"), 1u);
  EXPECT_EQ(found["scale"].parameter_offsets, (std::vector<std::uint16_t>{0, 8, 12, 24}));
  EXPECT_EQ(found["scale"].parameter_sizes, (std::vector<std::uint16_t>{8, 4, 12, 1}));
  EXPECT_TRUE(found["empty"].parameter_sizes.empty());
}

TEST(Cubin, PicksWhatTheGpuCanRun) {
  auto at = [](const std::vector<Part>& parts, int capability) {
    std::string bytes = container(parts);
    auto set = unpack(bytes.data(), capability);
    return set.images.empty()
               ? std::string(set.fault == ImageFault::no_kernel_image ? "none" : "invalid")
               : std::string(set.images[0].bytes.data(), 4).substr(0, 4);
  };
  std::vector<Part> parts = {{2, 70, "s70."}, {2, 80, "s80."}, {2, 86, "s86."}, {1, 90, "p90."}};
  EXPECT_EQ(at(parts, 70), "s70.");
  EXPECT_EQ(at(parts, 75), "s70.");
  EXPECT_EQ(at(parts, 80), "s80.");
  EXPECT_EQ(at(parts, 86), "s86.");
  EXPECT_EQ(at(parts, 89), "s86.");
  EXPECT_EQ(at(parts, 90), "p90.");
  EXPECT_EQ(at(parts, 100), "p90.");
  EXPECT_EQ(at(parts, 60), "none");
  std::vector<Part> exact = {{2, 90, "s90a", 0x100000}, {2, 90, "s90."}};
  EXPECT_EQ(at(exact, 90), "s90a");
  EXPECT_EQ(at({{2, 90, "s90a", 0x100000}}, 100), "none");
}

TEST(Cubin, ACubinByItselfRunsOnItsOwnKindOnly) {
  struct {
    Elf64_Ehdr header;
    Elf64_Shdr section;
  } elf{};
  auto& header = elf.header;
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_flags = 80;
  EXPECT_EQ(unpack(&elf, 80).fault, ImageFault::invalid) << "without sections";
  header.e_shoff = sizeof header, header.e_shentsize = sizeof elf.section, header.e_shnum = 1;
  EXPECT_EQ(unpack(&elf, 80).fault, ImageFault::none);
  EXPECT_EQ(unpack(&elf, 86).fault, ImageFault::none);
  EXPECT_EQ(unpack(&elf, 75).fault, ImageFault::no_kernel_image);
  EXPECT_EQ(unpack(&elf, 90).fault, ImageFault::no_kernel_image);
  // CUDA 13 writes the number one byte further up.
  header.e_ident[EI_ABIVERSION] = 8;
  header.e_flags = 90 << 8;
  EXPECT_EQ(unpack(&elf, 90).fault, ImageFault::none);
  EXPECT_EQ(unpack(&elf, 80).fault, ImageFault::no_kernel_image);
}

TEST(Cubin, KernelsHaveTheVersionOfTheirImage) {
  auto found = kernels(unpack(ptx, 90).images.at(0));
  EXPECT_EQ(found["scale"].ptx_version, 80);
  EXPECT_EQ(found["scale"].binary_version, 0);  // built for the GPU when it is loaded
  std::string bytes = container({{2, 80, "s80."}, {2, 86, "s86."}});
  EXPECT_EQ(unpack(bytes.data(), 89).images.at(0).capability, 86);
}

// The parts of a cubin of CUDA 13 that describe one kernel: its registers stand in the information
// about the whole image, not in the header of the kernel's section.
std::string cubin_of(const std::string& kernel, std::uint32_t registers) {
  std::string names("\0.shstrtab\0.symtab\0.nv.info\0", 28), symbol_names("\0", 1);
  const auto own_info = static_cast<Elf64_Word>(names.size());
  names += ".nv.info." + kernel + '\0';
  symbol_names += kernel + '\0';
  Elf64_Sym symbols[2]{};
  symbols[1].st_name = 1;
  const std::uint32_t attribute[3] = {0x00082f04, 1, registers};
  const std::string parts[] = {"",
                               names,
                               std::string(reinterpret_cast<const char*>(symbols), sizeof symbols),
                               std::string(reinterpret_cast<const char*>(attribute), 12),
                               symbol_names,
                               std::string(4, '\0')};
  const Elf64_Word starts[] = {0, 1, 11, 19, 1, own_info};
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_ABIVERSION] = 8;
  header.e_flags = 90 << 8;
  header.e_shentsize = sizeof(Elf64_Shdr), header.e_shnum = 6, header.e_shstrndx = 1;
  std::string body;
  Elf64_Shdr sections[6]{};
  for (std::size_t i = 0; i < 6; ++i) {
    sections[i].sh_name = starts[i], sections[i].sh_type = i == 2 ? SHT_SYMTAB : SHT_PROGBITS;
    sections[i].sh_link = i == 2 ? 4 : 0;
    sections[i].sh_offset = sizeof header + body.size(), sections[i].sh_size = parts[i].size();
    body += parts[i];
  }
  header.e_shoff = sizeof header + body.size();
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + body +
         std::string(reinterpret_cast<const char*>(sections), sizeof sections);
}

TEST(Cubin, ReadsRegistersFromTheInformationAboutTheImage) {
  const std::string cubin = cubin_of("scale", 40);
  auto found = kernels(unpack(container({{2, 90, cubin}}).data(), 90).images.at(0));
  ASSERT_EQ(found.count("scale"), 1u);
  EXPECT_EQ(found["scale"].registers, 40);
}

TEST(Cubin, UnpacksZstd) {
  std::string text = ptx;
  auto bytes = container({{1, 80, text, 0x8000}});
  auto set = unpack(bytes.data(), 90);
  ASSERT_EQ(set.images.size(), 1u);
  EXPECT_EQ(set.images[0].ptx(), text);
}

TEST(Cubin, DamagedContainersAreRefused) {
  std::string good = container({{1, 80, ptx, 0x8000}, {2, 80, std::string(300, 'x')}});
  std::mt19937 random(5);
  for (int i = 0; i < 500; ++i) {
    std::string bad = good;
    for (int k = 0; k < 3; ++k)
      bad[16 + random() % (bad.size() - 16)] ^= static_cast<char>(random());
    for (const auto& image : unpack(bad.data(), 80).images) kernels(image), variables(image);
  }
}

TEST(Lz4, UnpacksAndChecksBounds) {
  // "abcd" literally, then a match of 8 at distance 4, then "z".
  const char packed[] = {0x44, 'a', 'b', 'c', 'd', 4, 0, 0x10, 'z'};
  char out[13];
  ASSERT_TRUE(lz4_decompress(packed, sizeof packed, out, sizeof out));
  EXPECT_EQ(std::string(out, 13), "abcdabcdabcdz");
  char small[5];
  EXPECT_FALSE(lz4_decompress(packed, sizeof packed, small, sizeof small));
  const char wild[] = {0x04, 9, 0};
  EXPECT_FALSE(lz4_decompress(wild, sizeof wild, out, sizeof out));
}

}  // namespace
}  // namespace maya::device
