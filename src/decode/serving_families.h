// Families of kernels that serving engines bring along, for the table of families.
#pragma once

#include "decode/rule.h"

namespace maya::decode {

Made prepare_peer_reduce(const Kernel& kernel, const Name& name);
Made prepare_flashinfer(const Kernel& kernel, const Name& name);
Made prepare_routers(const Kernel& kernel, const Name& name);
Made prepare_expert_products(const Kernel& kernel, const Name& name);
Made prepare_triton_attention(const Kernel& kernel, const Name& name);
Made prepare_matmul_ogs(const Kernel& kernel, const Name& name);
Made prepare_fused_experts(const Kernel& kernel, const Name& name);
Made prepare_sglang(const Kernel& kernel, const Name& name);

}  // namespace maya::decode
