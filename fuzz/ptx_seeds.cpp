#include "mutate.h"

namespace maya::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> result{R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 b, .param .u32 n)
{
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<6>; .reg .f32 %f<4>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra $L1;
  mul.wide.s32 %rd3, %r5, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.f32 %f1, [%rd4];
  add.f32 %f2, %f1, %f1;
  add.s64 %rd5, %rd2, %rd3;
  st.global.f32 [%rd5], %f2;
$L1:
  ret;
}
)",
                                  R"(.version 8.3
.target sm_90a
.visible .entry loop(.param .u64 .ptr .global .align 16 a, .param .align 8 .b8 s[16])
{
  .reg .b32 %r<4>; .reg .pred %p<2>;
  mov.b32 %r1, 0;
$L2:
  add.s32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 100;
  @%p1 bra $L2;
  ret;
}
)"};
  add_files(result, "src/decode/testdata", ".ptx", 20000);
  return result;
}

}  // namespace maya::fuzz
