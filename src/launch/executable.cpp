#include "launch/executable.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace maya::launch {

namespace {

bool is_program(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

std::string on_path(const std::string& name, const std::string& search_path) {
  std::istringstream directories(search_path);
  for (std::string directory; std::getline(directories, directory, ':');) {
    std::string path = (directory.empty() ? "." : directory) + "/" + name;
    if (is_program(path)) return path;
  }
  return "";
}

// PT_INTERP of a 64-bit ELF file; empty if it has none or is not an ELF file.
std::string elf_interpreter(std::ifstream& file) {
  Elf64_Ehdr header{};
  file.seekg(0);
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return "";
  }
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + i * sizeof segment));
    file.read(reinterpret_cast<char*>(&segment), sizeof segment);
    if (!file) return "";
    if (segment.p_type != PT_INTERP || segment.p_filesz == 0 || segment.p_filesz > 4096) continue;
    std::string name(segment.p_filesz - 1, '\0');
    file.seekg(static_cast<std::streamoff>(segment.p_offset));
    file.read(name.data(), static_cast<std::streamsize>(name.size()));
    return file ? name : "";
  }
  return "";
}

// "#!/usr/bin/env python3" → python3 on PATH; "#!/bin/sh -e" → /bin/sh.
std::string script_interpreter(std::ifstream& file, const std::string& search_path) {
  std::string line;
  std::getline(file, line);
  if (line.rfind("#!", 0) != 0) return "";
  std::istringstream words(line.substr(2));
  std::string program, argument;
  words >> program >> argument;
  if (program.size() >= 4 && program.compare(program.size() - 4, 4, "/env") == 0) {
    if (argument == "-S") words >> argument;
    if (!argument.empty()) return on_path(argument, search_path);
  }
  return program;
}

bool is_elf(std::ifstream& file) {
  char magic[SELFMAG] = {};
  file.seekg(0);
  file.read(magic, SELFMAG);
  bool elf = file && std::memcmp(magic, ELFMAG, SELFMAG) == 0;
  file.clear();
  file.seekg(0);
  return elf;
}

}  // namespace

Result<Executable> find_executable(const std::string& name, const std::string& search_path) {
  Executable found;
  if (name.find('/') == std::string::npos) {
    found.path = on_path(name, search_path);
    if (found.path.empty())
      return Error{fmt::format("command not found: '{}' is not on PATH", name)};
  } else {
    struct stat info {};
    if (stat(name.c_str(), &info) != 0) {
      return Error{fmt::format("command not found: {}: {}", name, std::strerror(errno))};
    }
    if (S_ISDIR(info.st_mode)) return Error{fmt::format("cannot run {}: it is a directory", name)};
    if (access(name.c_str(), X_OK) != 0) {
      bool python = name.size() > 3 && name.compare(name.size() - 3, 3, ".py") == 0;
      return Error{fmt::format("cannot run {}: it is not executable{}", name,
                               python ? fmt::format("; did you mean `python {}`?", name) : "")};
    }
    found.path = name;
  }

  std::string program = found.path;
  std::ifstream file(program, std::ios::binary);
  if (file && !is_elf(file)) {
    found.interpreter = script_interpreter(file, search_path);
    if (!found.interpreter.empty()) {
      program = found.interpreter;
      if (!is_program(program)) {
        return Error{
            fmt::format("cannot run {}: its interpreter {} does not exist", name, program)};
      }
      file = std::ifstream(program, std::ios::binary);
    }
  }
  if (file) found.loader = elf_interpreter(file);

  struct stat info {};
  if (stat(program.c_str(), &info) == 0 && (info.st_mode & S_ISUID) && info.st_uid != geteuid()) {
    return Error{fmt::format(
        "{} is set-user-ID: the loader ignores LD_PRELOAD for it, so nothing behind it can "
        "be emulated; run the training command without it",
        program)};
  }
  if (found.loader.find("ld-musl") != std::string::npos) {
    return Error{fmt::format(
        "{} is linked against musl ({}): the emulated libraries need glibc; use a glibc build "
        "of it",
        program, found.loader)};
  }
  return found;
}

}  // namespace maya::launch
