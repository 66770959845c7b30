// The six entry points of the backend interface. What a graph means is in graph.cpp.
#include <algorithm>
#include <cstdio>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>

#include "shim/cudnn/graph.h"
#include "shim/cudnn/node.h"
#include "shim/cudnn/submit.h"

namespace maya::shim::cudnn {

std::size_t attribute_bytes(int type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_FRACTION:
      return 16;
    // Everything else is an enum, also those of releases newer than our declarations.
    default:
      return type >= 0 && type < 256 ? 4 : 0;
  }
}

}  // namespace maya::shim::cudnn

using namespace maya::abi;
using namespace maya::shim::cudnn;
namespace session = maya::session;

namespace {

cudnnStatus_t bad(const char* why) { return fail(CUDNN_STATUS_BAD_PARAM, why); }

Descriptor* as_descriptor(cudnnBackendDescriptor_t handle) {
  return session::find_handle<Descriptor>(handle);
}

// Plans by the number in their JSON text, so that a caller that caches plans as text can come back
// with it.
std::mutex plans_mutex;
std::unordered_map<std::string, NodePtr>& plans() {
  static auto* all = new std::unordered_map<std::string, NodePtr>;
  return *all;
}

std::string remember(const NodePtr& node) {
  char text[96];
  std::snprintf(text, sizeof text, "{\"maya_plan\": \"%p\"}", static_cast<void*>(node.get()));
  std::lock_guard lock(plans_mutex);
  plans()[text] = node;
  return text;
}

// The count given back is how many there are when nothing is requested, and how many were given
// when something is: frontends resize their lists to it.
cudnnStatus_t give_descriptors(const std::vector<NodePtr>& nodes, std::int64_t requested,
                               std::int64_t* count, void* array) {
  auto available = static_cast<std::int64_t>(nodes.size());
  if (count) *count = requested > 0 ? std::min(requested, available) : available;
  if (requested <= 0 || !array) return CUDNN_STATUS_SUCCESS;
  auto* handles = static_cast<cudnnBackendDescriptor_t*>(array);
  for (std::int64_t i = 0; i < requested && i < static_cast<std::int64_t>(nodes.size()); ++i) {
    Descriptor* own = as_descriptor(handles[i]);
    if (!own || own->node->kind != nodes[static_cast<std::size_t>(i)]->kind)
      return bad("the array must hold descriptors of the attribute's kind");
    own->node = nodes[static_cast<std::size_t>(i)];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t give(const void* from, std::size_t element, std::int64_t available,
                   std::int64_t requested, std::int64_t* count, void* array) {
  if (count) *count = requested > 0 ? std::min(requested, available) : available;
  if (requested > 0 && array)
    std::memcpy(array, from, element * static_cast<std::size_t>(std::min(requested, available)));
  return CUDNN_STATUS_SUCCESS;
}

template <class T>
cudnnStatus_t give_values(const std::vector<T>& values, std::int64_t requested, std::int64_t* count,
                          void* array) {
  return give(values.data(), sizeof(T), static_cast<std::int64_t>(values.size()), requested, count,
              array);
}

// Attributes nobody sets: the library works them out. nullopt: not one of them.
std::optional<cudnnStatus_t> derived(const NodePtr& node, int name, std::int64_t requested,
                                     std::int64_t* count, void* array) {
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      auto graph = node->shared_child(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      if (!graph) return bad("engine heuristics without an operation graph");
      return give_descriptors(
          engine_configs(graph, static_cast<int>(node->integer(CUDNN_ATTR_ENGINEHEUR_MODE))),
          requested, count, array);
    }
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: {
      std::int64_t bytes = node->plan ? node->plan->workspace : 0;
      return give(&bytes, sizeof bytes, 1, requested, count, array);
    }
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE: {
      std::int64_t bytes = 0;
      if (auto engine = node->shared_child(CUDNN_ATTR_ENGINECFG_ENGINE))
        if (auto plan = plan_of(*engine)) bytes = plan->workspace;
      return give(&bytes, sizeof bytes, 1, requested, count, array);
    }
    case CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED: {
      std::int32_t bytes = 0;
      return give(&bytes, sizeof bytes, 1, requested, count, array);
    }
    case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION: {
      if (node->find(name)) return std::nullopt;
      std::string text = remember(node);
      return give(text.c_str(), 1, static_cast<std::int64_t>(text.size() + 1), requested, count,
                  array);
    }
    case CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION:
    case CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION: {
      if (node->find(name)) return std::nullopt;
      return give("{}", 1, 3, requested, count, array);
    }
    case CUDNN_ATTR_EXECUTION_PLAN_COMPUTED_INTERMEDIATE_UIDS:
    case CUDNN_ATTR_EXECUTION_PLAN_RUN_ONLY_INTERMEDIATE_UIDS:
    case CUDNN_ATTR_ENGINE_KNOB_INFO:
    case CUDNN_ATTR_ENGINE_LAYOUT_INFO:
    case CUDNN_ATTR_ENGINECFG_INTERMEDIATE_INFO:
      if (count) *count = 0;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
      if (node->find(name)) return std::nullopt;
      if (count) *count = 0;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return give_values(numerical_notes(*node), requested, count, array);
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE: {
      if (count) *count = 0;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT: {
      // More than the heuristics propose: cuDNN's front end asks for some engines by their number
      // (attention's backward on Blackwell for 5 and 17).
      std::int64_t engines = engine_count(*node) > 0 ? kNumberedEngines : 0;
      return give(&engines, sizeof engines, 1, requested, count, array);
    }
    case CUDNN_ATTR_OPERATIONGRAPH_IS_SAME_TOPOLOGY:
    case CUDNN_ATTR_KERNEL_CACHE_IS_ENGINECFG_KERNEL_CACHED: {
      if (node->find(name)) return std::nullopt;
      bool no = false;
      return give(&no, 1, 1, requested, count, array);
    }
    default:
      return std::nullopt;
  }
}

cudnnStatus_t finalize_plan(Node& node) {
  if (const Attribute* json = node.find(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION)) {
    std::string text(reinterpret_cast<const char*>(json->bytes.data()), json->bytes.size());
    text.resize(std::strlen(text.c_str()));
    std::lock_guard lock(plans_mutex);
    auto found = plans().find(text);
    if (found == plans().end())
      return fail(CUDNN_STATUS_NOT_SUPPORTED,
                  "a plan serialized by another process cannot be restored");
    node.attributes = found->second->attributes;
    node.plan = std::make_unique<Plan>(*found->second->plan);
    return CUDNN_STATUS_SUCCESS;
  }
  const Node* config = node.child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Node* engine = config ? config->child(CUDNN_ATTR_ENGINECFG_ENGINE) : nullptr;
  if (!engine) return bad("an execution plan needs an engine configuration");
  node.plan = plan_of(*engine);
  if (!node.plan)
    return fail(CUDNN_STATUS_NOT_SUPPORTED, "no engine of this GPU executes the operation graph");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check(Node& node) {
  switch (node.kind) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR: {
      const Attribute* dims = node.find(CUDNN_ATTR_TENSOR_DIMENSIONS);
      const Attribute* strides = node.find(CUDNN_ATTR_TENSOR_STRIDES);
      if (!dims || !strides || dims->count != strides->count ||
          !node.find(CUDNN_ATTR_TENSOR_DATA_TYPE) || !node.find(CUDNN_ATTR_TENSOR_UNIQUE_ID))
        return bad("a tensor needs a data type, a unique id, and as many strides as dimensions");
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: {
      const Attribute* ops = node.find(CUDNN_ATTR_OPERATIONGRAPH_OPS);
      return ops && !ops->children.empty() ? CUDNN_STATUS_SUCCESS
                                           : bad("an operation graph needs operations");
    }
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR: {
      const Node* graph = node.child(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
      if (!graph) return bad("an engine needs an operation graph");
      if (!plan_of(node))
        return fail(CUDNN_STATUS_NOT_SUPPORTED, "the engine does not execute the operation graph");
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      return node.child(CUDNN_ATTR_ENGINECFG_ENGINE)
                 ? CUDNN_STATUS_SUCCESS
                 : bad("an engine configuration needs an engine");
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: {
      auto graph = node.shared_child(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      if (!graph) return bad("engine heuristics need an operation graph");
      if (engine_count(*graph) == 0)
        return fail(CUDNN_STATUS_NOT_SUPPORTED,
                    "no engine of this GPU executes the operation graph");
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return finalize_plan(node);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR: {
      const Attribute* uids = node.find(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
      const Attribute* pointers = node.find(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
      if ((uids ? uids->count : 0) != (pointers ? pointers->count : 0))
        return bad("a variant pack needs as many data pointers as unique ids");
      return CUDNN_STATUS_SUCCESS;
    }
    default:
      return CUDNN_STATUS_SUCCESS;
  }
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind,
                                           cudnnBackendDescriptor_t* descriptor) {
  session::Call call;
  if (!descriptor) return bad("cudnnBackendCreateDescriptor: descriptor is null");
  if (kind < 0 || kind > 99)
    return fail(CUDNN_STATUS_NOT_SUPPORTED, "unknown kind of backend descriptor");
  auto node = std::make_shared<Node>();
  node->kind = kind;
  *descriptor = session::make_handle<Descriptor>(std::move(node));
  return *descriptor ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  session::Call call;
  if (descriptor && !session::drop_handle<Descriptor>(descriptor))
    return bad("not a living backend descriptor");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor) {
  return as_descriptor(descriptor) ? CUDNN_STATUS_SUCCESS : bad("descriptor is null");
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* array) {
  session::Call call;
  Descriptor* own = as_descriptor(descriptor);
  std::size_t element = attribute_bytes(type);
  // No attribute has more elements; an array of that length would not be in memory either.
  constexpr std::int64_t most = 1 << 16;
  if (!own || element == 0 || count < 0 || count > most || (count > 0 && !array))
    return bad("cudnnBackendSetAttribute: arguments");
  if (own->node->finalized)
    return fail(CUDNN_STATUS_NOT_INITIALIZED, "the descriptor is finalized already");
  Attribute& attribute = own->node->slot(name);
  attribute.type = type, attribute.count = count;
  attribute.children.clear();
  attribute.bytes.assign(
      static_cast<const std::byte*>(array),
      static_cast<const std::byte*>(array) + element * static_cast<std::size_t>(count));
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    auto* handles = static_cast<const cudnnBackendDescriptor_t*>(array);
    for (std::int64_t i = 0; i < count; ++i) {
      Descriptor* child = as_descriptor(handles[i]);
      if (!child) return bad("cudnnBackendSetAttribute: a descriptor in the array is null");
      if (!child->node->finalized) {
#if MAYA_CUDNN_MAJOR >= 9
        return fail(CUDNN_STATUS9_BAD_PARAM_NOT_FINALIZED,
                    "a descriptor in the array is not finalized");
#else
        return bad("a descriptor in the array is not finalized");
#endif
      }
      attribute.children.push_back(child->node);
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t requested,
                                       std::int64_t* count, void* array) {
  session::Call call;
  Descriptor* own = as_descriptor(descriptor);
  if (!own || attribute_bytes(type) == 0 || requested < 0)
    return bad("cudnnBackendGetAttribute: arguments");
  if (auto status = derived(own->node, name, requested, count, array)) return *status;
  const Attribute* attribute = own->node->find(name);
  if (!attribute) {
    if (count) *count = 0;
    return requested == 0
               ? CUDNN_STATUS_SUCCESS
               : fail(CUDNN_STATUS_NOT_SUPPORTED, "the attribute was never set on this descriptor");
  }
  if (attribute->type != type)
    return bad("cudnnBackendGetAttribute: the attribute has another type");
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    return give_descriptors(attribute->children, requested, count, array);
  return give(attribute->bytes.data(), attribute_bytes(type), attribute->count, requested, count,
              array);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  session::Call call;
  Descriptor* own = as_descriptor(descriptor);
  if (!own) return bad("cudnnBackendFinalize: descriptor is null");
  cudnnStatus_t status = check(*own->node);
  if (status == CUDNN_STATUS_SUCCESS) own->node->finalized = true;
  return status;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_descriptor,
                                  cudnnBackendDescriptor_t pack_descriptor) {
  MAYA_CUDNN_ENTER(handle);
  Descriptor* plan = as_descriptor(plan_descriptor);
  Descriptor* pack = as_descriptor(pack_descriptor);
  if (!plan || !plan->node->plan || !pack || !pack->node->finalized)
    return bad("cudnnBackendExecute: plan and variant pack must be finalized");
  const Plan& what = *plan->node->plan;
  const Attribute* uids = pack->node->find(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const Attribute* pointers = pack->node->find(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  Touches touches;
  for (std::int64_t i = 0; uids && i < uids->count; ++i) {
    std::int64_t uid;
    void* address;
    std::memcpy(&uid, uids->bytes.data() + i * 8, 8);
    std::memcpy(&address, pointers->bytes.data() + i * 8, 8);
    for (const Plan::Output& output : what.outputs)
      if (output.uid == uid && address) touches.add(session::writes(address, output.bytes));
  }
  return status_of(touches.submit(own->stream, what.work, what.name));
}

}  // extern "C"
