// A backend descriptor: attributes as they were set, and the descriptors they refer to.
//
// cuDNN's own descriptors are handed over by content: a child may be destroyed once it was set, and
// asking for a descriptor attribute fills in a descriptor the caller made. So what callers hold is
// a Descriptor, which points to a shared Node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "maya/op.h"
#include "shim/cudnn/handle.h"

namespace maya::shim::cudnn {

struct Node;
using NodePtr = std::shared_ptr<Node>;

struct Attribute {
  int name{};
  int type{};
  std::int64_t count{};
  std::vector<std::byte> bytes;
  std::vector<NodePtr> children;  // of CUDNN_TYPE_BACKEND_DESCRIPTOR
};

// What a finalized plan does, worked out once.
struct Plan {
  Work work;
  const char* name{};
  std::int64_t workspace{};
  struct Output {
    std::int64_t uid;
    std::uint64_t bytes;
  };
  std::vector<Output> outputs;
};

struct Node {
  int kind{};
  bool finalized{};
  std::vector<Attribute> attributes;
  std::unique_ptr<Plan> plan;

  const Attribute* find(int name) const {
    for (const Attribute& attribute : attributes)
      if (attribute.name == name) return &attribute;
    return nullptr;
  }
  Attribute& slot(int name) {
    for (Attribute& attribute : attributes)
      if (attribute.name == name) return attribute;
    attributes.push_back({name});
    return attributes.back();
  }
  const Node* child(int name, std::size_t index = 0) const {
    const Attribute* attribute = find(name);
    return attribute && index < attribute->children.size() ? attribute->children[index].get()
                                                           : nullptr;
  }
  NodePtr shared_child(int name) const {
    const Attribute* attribute = find(name);
    return attribute && !attribute->children.empty() ? attribute->children[0] : nullptr;
  }
  std::int64_t integer(int name, std::int64_t otherwise = 0) const {
    const Attribute* attribute = find(name);
    if (!attribute || attribute->bytes.empty()) return otherwise;
    std::int64_t value = 0;
    if (attribute->bytes.size() >= 8) {
      std::memcpy(&value, attribute->bytes.data(), 8);
    } else if (attribute->bytes.size() >= 4) {
      std::int32_t narrow;
      std::memcpy(&narrow, attribute->bytes.data(), 4);
      value = narrow;
    } else {
      value = static_cast<std::int64_t>(attribute->bytes[0]);
    }
    return value;
  }
  std::vector<std::int64_t> integers(int name) const {
    const Attribute* attribute = find(name);
    if (!attribute) return {};
    std::vector<std::int64_t> values(attribute->bytes.size() / 8);
    std::memcpy(values.data(), attribute->bytes.data(), values.size() * 8);
    return values;
  }
};

struct Descriptor {
  static constexpr maya::session::HandleKind kind = maya::session::handle_kind("cudnn backend");
  NodePtr node;
};

// Bytes of one element of an attribute type; 0 for a type that does not exist.
std::size_t attribute_bytes(int type);

}  // namespace maya::shim::cudnn
